"""What probing benches share: predicates, probe batches, expected records, loading, registers."""

import numpy as np
from amaranth.lib.wiring import In, Out
from cocotb.triggers import ClockCycles, FallingEdge

from hw.spec import NOT, RECORD, Band, Predicate, Side, compare
from hw.spec.predicates import registers
from hw.spec.reference import probe_records
from sim.design_bench import DesignBench
from sim.stream_bfm import Codec, StreamSink, StreamSource, stalls

__all__ = [
    "PREDICATES", "MATCHES", "expected_records", "records_by_search", "matches_of", "frame",
    "wide_frame", "index_entries", "memory_words", "register_bits", "StreamBench",
]

#: Every operator, one band and four, by the names that coverage prints.
PREDICATES = {
    **{operator: compare(operator, 1) for operator in ("=", "<>", "<", "<=", ">", ">=")},
    "band": Predicate((Band(-2, 3),)),
    "bands": Predicate((Band(None, -9), Band(-5, -4), Band(0, 1), Band(7, None))),
}
#: How many stored tuples a probe can match.
MATCHES = ("empty", "one", "many")


def expected_records(stored, probes, predicate, side):
    """Records of the reference: (start, end with its label) for each probe and band."""
    label = int(NOT) if predicate.negated else 0
    keys = [int(key) for key in stored]
    return [
        (start, end | label)
        for probe in probes
        for start, end in probe_records(keys, int(probe), side, predicate)
    ]


def records_by_search(stored, probes, predicate, side):
    """The same by numpy, for sizes where the reference takes too long; RECORD, flat."""
    wanted = predicate.intervals(side, np.asarray(probes)).reshape(-1)
    records = np.zeros(len(wanted), RECORD)
    records["start"] = np.searchsorted(stored, wanted["lo"], "left")
    ends = np.searchsorted(stored, wanted["hi"], "right").astype(np.uint32)
    records["end"] = np.maximum(records["start"], ends)
    if predicate.negated:
        records["end"] |= NOT
    return records


def matches_of(records, rows, predicate):
    """For each probe, whether its records name no tuple, one, or many."""
    bands = max(1, len(predicate.bands))
    for first in range(0, len(records), bands):
        count = sum((end & ~int(NOT)) - start for start, end in records[first : first + bands])
        count = rows - count if predicate.negated else count
        yield MATCHES[min(count, 2)]


def frame(values, empty=0):
    """Values as narrow tokens, and the end, whose data is `empty`."""
    return [*({"data": value, "end": 0} for value in values), {"data": empty, "end": 1}]


def wide_frame(values, lanes):
    """Values as wide tokens, the last of them short, and the end."""
    words = []
    for first in range(0, len(values), lanes):
        data = [int(value) for value in values[first : first + lanes]]
        filled = data + [0] * (lanes - len(data))
        words.append({"data": filled, "count": len(data), "end": 0})
    return [*words, {"data": [0] * lanes, "count": 0, "end": 1}]


def index_entries(stored, params, array=0):
    """What fills the index array of that main array."""
    index = enumerate(stored[:: params.partition_rows])
    return [{"array": array, "partition": number, "key": int(key)} for number, key in index]


def memory_words(stored, params, base=0, garbage=-1):
    """What fills the main array, the rest of its last partition being garbage."""
    keys = [int(key) for key in stored]
    keys += [garbage] * (-len(keys) % params.partition_rows)
    return [
        {
            "address": base + first // params.lanes,
            "word": [{"key": key, "rid": 0} for key in keys[first : first + params.lanes]],
        }
        for first in range(0, len(keys), params.lanes)
    ]


def register_bits(predicate, side: Side, key_bits, shape):
    """The predicate's registers as the bits of the port `bands` of that shape, and their number."""
    words = registers(predicate, side, key_bits)
    names = ("lo", "hi", "lo_bound", "hi_bound")
    bands = [{name: int(word[name]) for name in names} for word in words]
    most = len(Codec(shape).fields)
    filled = bands + [dict.fromkeys(names, 0)] * (most - len(bands))
    return Codec(shape).pack(filled), len(bands)


class StreamBench(DesignBench):
    """A design just out of reset: a source at each input stream, a sink at each output stream.

    `members` are those of the design's signature; ports of memory count by their inner streams.
    Each end is an attribute with the stream's name.
    """

    def __init__(self, dut, members, rng, stall_in=0.0, stall_out=0.0):
        super().__init__(dut)
        self.shapes = {}
        pauses = {In: stalls(rng, stall_in), Out: stalls(rng, stall_out)}
        for name, flow, member in _streams(members):
            self.shapes[name] = member.members["payload"].shape
            make = StreamSource if flow is In else StreamSink
            end = make(dut, name, shape=self.shapes[name], pause=pauses[flow])
            setattr(self, name, end)

    async def set(self, **registers):
        """Registers of the design, between frames; they are seen two cycles later."""
        await FallingEdge(self.dut.clk)
        for name, value in registers.items():
            getattr(self.dut, name).value = value
        await ClockCycles(self.dut.clk, 2)

    async def sent(self, source):
        """Wait until all that was given to a source has been taken."""
        while not source.idle:
            await FallingEdge(self.dut.clk)


def _streams(members):
    for name, member in members.items():
        if not member.is_signature:
            continue
        if "payload" in member.signature.members:
            yield name, member.flow, member.signature
        else:
            for inner, flow, signature in _streams(member.signature.members):
                # The signature of an In member is a flipped one already.
                yield f"{name}__{inner}", flow, signature

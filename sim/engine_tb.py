"""In-simulator tests of hw.rtl.engine.Engine: several cores answer as one, in the asked order."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from hw.rtl.combiner import answer_layout
from hw.rtl.engine_words import word_token
from hw.spec import Band, JoinParams, Predicate, Side
from hw.spec.commands import Opcode
from sim.coverage import Coverage
from sim.design_bench import DesignBench
from sim.elaborate import bench_settings
from sim.engine_commands import EngineCommands, share_of
from sim.punctuation import tagged
from sim.scoreboard import same_multiset, same_tuples
from sim.stimulus import STALL_RATES, generator
from sim.stream_bfm import StreamSink, StreamSource, stalls

PARAMS = JoinParams(**bench_settings()["params"])
CORES = PARAMS.cores
BAND = Predicate((Band(-30, 30),))
#: Name of an order -> comparisons between stars of a scan of n, and whether cores are ordered.
ORDERS = {
    "none": lambda scan: (0, 0), "relaxed outer": lambda scan: (3 * scan, 0),
    "strict outer": lambda scan: (scan, 0), "strict inner": lambda scan: (1, 1),
}
COVER = Coverage("engine", order=[*ORDERS], stall_in=STALL_RATES, stall_out=STALL_RATES)


class Bench(DesignBench):
    """An engine of nested-loop cores, fed with whole commands."""

    def __init__(self, dut, rng, stall_in, stall_out):
        super().__init__(dut)
        self.words = StreamSource(
            dut, "words", shape=word_token(PARAMS), pause=stalls(rng, stall_in)
        )
        self.answers = StreamSink(
            dut, "answers", shape=answer_layout(PARAMS), pause=stalls(rng, stall_out)
        )

    async def events(self, commands):
        """The events of so many answers, answer by answer."""
        while sum(answer["last"] for answer in self.answers.received) < commands:
            await ClockCycles(self.dut.clk, 8)
        answers, current = [], []
        for event in tagged(self.answers.received):
            current.append(event)
            if isinstance(event, tuple) and event[2]:
                answers.append(current)
                current = []
        assert current == []
        return answers


def batch_of(np_rng, count, first):
    tuples = np.zeros(count, [("key", "<i4"), ("rid", "<u4")])
    tuples["key"] = np.sort(np_rng.integers(0, 300, count))
    tuples["rid"] = first + np.arange(count)
    return tuples


def matches(events, scan):
    """(group, probe, core, position) of every match between stars."""
    group, found = 0, []
    for event in events:
        if isinstance(event, tuple):
            group += 1
        elif not event["reply"]:
            number, position = divmod(event["number"], scan)
            assert event["record"]["end"] == event["record"]["start"] + 1
            assert event["record"]["start"] == position
            found.append((group, number, event["core"], position))
    return found


@cocotb.test(timeout_time=2000, timeout_unit="us")
@cocotb.parametrize(order=[*ORDERS], stall_in=STALL_RATES, stall_out=STALL_RATES)
async def cores_answer_as_one(dut, order, stall_in, stall_out):
    """Two batches stored by turns, then probed: every match once, in the order that was asked."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    make = EngineCommands(PARAMS)
    batches = [batch_of(np_rng, 7, 0), batch_of(np_rng, 4, 7)]
    keys = np.sort(np_rng.integers(0, 300, 8))
    scan = -(-11 // CORES)
    star_every, ordered = ORDERS[order](scan)
    side = Side(rng.randrange(2))
    sent = [
        make.words(Opcode.CREATE, side, 5, 16),
        *(make.insert(side, 5, batch) for batch in batches),
        make.probe(side, 5, keys, BAND, star_every=star_every, ordered=ordered, scan=scan),
        make.words(Opcode.EXPIRE, side, 5, 0),
        make.words(Opcode.EXPIRE, side.other, 5, 0),
    ]
    for words in sent:
        bench.words.send(words)
    answers = await bench.events(len(sent))
    for events in answers:
        assert sorted(e["core"] for e in events if isinstance(e, dict) and e["reply"]) == [
            *range(CORES)
        ]
    assert {event[1] for event in answers[3] if isinstance(event, tuple)} == {int(side)}
    check_matches(matches(answers[3], scan), batches, keys, scan, star_every, order)
    COVER.hit(order=order, stall_in=stall_in, stall_out=stall_out)


def check_matches(found, batches, keys, scan, star_every, order):
    shares = [
        np.concatenate([share_of(batches[0], CORES, core), share_of(batches[1], CORES, core, 7)])
        for core in range(CORES)
    ]
    expected = [
        (probe, core, int(position))
        for probe, key in enumerate(keys) for core, tuples in enumerate(shares)
        for position in np.flatnonzero(np.abs(tuples["key"].astype(int) - int(key)) <= 30)
    ]
    same_multiset([match[1:] for match in found], expected, "matches")
    if star_every:
        for group, probe, _, position in found:
            assert (probe * scan + position) // star_every == group, "a match passed its star"
    if order == "strict inner":
        arrival = [(probe, position * CORES + core) for _, probe, core, position in found]
        same_tuples(arrival, sorted(arrival), "matches in order of arrival")


@cocotb.test()
async def every_bin_was_hit(dut):
    """Last: the functional coverage of this bench."""
    COVER.check()

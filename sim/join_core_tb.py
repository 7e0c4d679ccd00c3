"""In-simulator tests of hw.rtl.join_core.JoinCore with its memory."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from hw.rtl.join_core import command_layout
from hw.spec import JoinParams, Side, tuple_dtype
from hw.spec.commands import Opcode, Status
from hw.spec.predicates import registers
from sim.coverage import Coverage
from sim.elaborate import bench_settings
from sim.probing import MATCHES, PREDICATES, StreamBench, expected_records, matches_of, wide_frame
from sim.scoreboard import merged
from sim.simulated_core import SimulatedCore
from sim.stimulus import KINDS, STALL_RATES, generator, sorted_tuples

PARAMS = JoinParams(**bench_settings()["params"])
TOP = SimulatedCore(PARAMS).signature.members
COVER = Coverage(
    "join core", operator=PREDICATES, side=("l", "r"), matches=MATCHES, stall_in=STALL_RATES,
    stall_out=STALL_RATES,
)
COMMANDS = Coverage(
    "join core commands", opcode=[opcode.name for opcode in Opcode], refused=(False, True),
    stall_in=STALL_RATES, stall_out=STALL_RATES,
)
NO_BAND = {"lo": 0, "hi": 0, "lo_bound": 0, "hi_bound": 0}
NO_FIELDS = {name: 0 for name, _ in command_layout(PARAMS)} | {"bands": [NO_BAND] * PARAMS.bands}


class Bench(StreamBench):
    """A core with its memory, and a model of what it should hold."""

    def __init__(self, dut, rng, stall_in=0.0, stall_out=0.0):
        super().__init__(dut, TOP, rng, stall_in, stall_out)
        self.stalls = {"stall_in": stall_in, "stall_out": stall_out}
        self.rng = rng
        self.held = {}  # (side, subwindow) -> [capacity, tuples]

    def command(self, opcode, side, subwindow, count=0, **fields):
        token = NO_FIELDS | {"opcode": opcode, "side": side, "subwindow": subwindow,
                             "count": count} | fields
        self.commands.send([token])

    def create(self, side, subwindow, capacity):
        self.command(Opcode.CREATE, side, subwindow, capacity)
        good = (side, subwindow) not in self.held and len(self.held) < 3
        good = good and capacity <= PARAMS.subwindow
        if good:
            self.held[side, subwindow] = [capacity, np.empty(0, tuple_dtype(PARAMS.key_bits))]
        return self.reply(Opcode.CREATE, side, subwindow, good)

    def expire(self, side, subwindow):
        self.command(Opcode.EXPIRE, side, subwindow)
        good = self.held.pop((side, subwindow), None) is not None
        return self.reply(Opcode.EXPIRE, side, subwindow, good)

    def insert(self, side, subwindow, tuples):
        self.command(Opcode.INSERT, side, subwindow, len(tuples))
        words = wide_frame(range(len(tuples)), PARAMS.lanes)
        for word in words:
            rows = [tuples[n].tolist() if n < len(tuples) else (0, 0) for n in word["data"]]
            word["data"] = [{"key": key, "rid": rid} for key, rid in rows]
        if not len(tuples):
            words[0]["data"] = [{"key": 0, "rid": 0}] * PARAMS.lanes
        self.tuples.send(words)
        held = self.held.get((side, subwindow))
        good = held is not None and len(held[1]) + len(tuples) <= held[0]
        good = good and len(tuples) <= PARAMS.insert_buffer
        if good:
            held[1] = merged(held[1], tuples)
        return self.reply(Opcode.INSERT, side, subwindow, good)

    def probe(self, stored, subwindow, probes, predicate):
        words = registers(predicate, stored.other, PARAMS.key_bits)
        bands = [{name: int(word[name]) for name in NO_BAND} for word in words]
        bands += [NO_BAND] * (PARAMS.bands - len(bands))
        self.command(
            Opcode.PROBE, stored, subwindow, len(probes), bands=bands, band_count=len(words),
            negated=int(predicate.negated), dense=self.rng.randrange(2), chunk_words=1,
        )
        self.probes.send(wide_frame(probes, PARAMS.lanes))
        held = self.held.get((stored, subwindow))
        good = held is not None
        expected = (
            expected_records(held[1]["key"], probes, predicate, stored.other) if good else []
        )
        return expected, self.reply(Opcode.PROBE, stored, subwindow, good)

    def reply(self, opcode, side, subwindow, good):
        """The reply that is due, by the model."""
        mine = sorted(number for who, number in self.held if who is side)
        status = Status(0) if good else Status.REFUSED
        if mine:
            capacity, tuples = self.held[side, mine[-1]]
            status |= Status.NEWEST_FULL if len(tuples) == capacity else 0
        if not mine or not len(self.held[side, mine[0]][1]):
            status |= Status.OLDEST_EMPTY
        COMMANDS.hit(opcode=opcode.name, refused=not good, **self.stalls)
        return {"opcode": opcode, "side": side, "subwindow": subwindow, "status": status}

    async def expect(self, reply):
        found = await self.replies.queue.get()
        assert {name: found[name] for name in reply} == reply

    async def expect_records(self, expected):
        words = await self.records.frame()
        found = [(record["start"], record["end"])
                 for word in words for record in word["data"][: word["count"]]]
        assert found == expected


@cocotb.test(timeout_time=8, timeout_unit="ms")
@cocotb.parametrize(stall_in=STALL_RATES, stall_out=STALL_RATES)
async def every_command_while_the_core_is_busy(dut, stall_in, stall_out):
    """Commands are queued without waiting for replies: each is obeyed in its turn."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    left, right = Side.LEFT, Side.RIGHT
    tuples = sorted_tuples(np_rng, "uniform", 5)
    due = [bench.create(left, 1, 20), bench.create(right, 1, 3), bench.create(left, 1, 4),
           bench.create(left, 2, PARAMS.subwindow), bench.create(right, 2, 4),
           bench.insert(left, 1, tuples), bench.insert(right, 1, tuples),
           bench.insert(right, 1, tuples[:3]), bench.insert(left, 9, tuples),
           bench.insert(left, 1, tuples[:0]), bench.insert(left, 2, tuples)]
    for reply in due:
        await bench.expect(reply)
    expected, reply = bench.probe(left, 9, np.arange(4), PREDICATES["="])
    after = bench.expire(left, 9), bench.expire(left, 2)
    await bench.expect_records(expected)
    for one in (reply, *after):
        await bench.expect(one)


@cocotb.test(timeout_time=8, timeout_unit="ms")
@cocotb.parametrize(stall_in=STALL_RATES, stall_out=STALL_RATES)
async def every_operator_in_both_directions(dut, stall_in, stall_out):
    """Inserts and probes of all predicates, on subwindows that match none, one and many."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    for number, parts in enumerate(([1], [2], [9, 1, 7])):
        for stored in Side:
            replies = [bench.create(stored, number, 20)]
            for part in parts:
                tuples = sorted_tuples(np_rng, "skewed", part)
                tuples["key"] = np.sort(np_rng.integers(-7, 7, part))
                if part == 1:
                    tuples["key"] = 8
                replies.append(bench.insert(stored, number, tuples))
            for reply in replies:
                await bench.expect(reply)
            keys = bench.held[stored, number][1]["key"]
            around, reach = (0, 12) if len(keys) > 2 else (int(keys[0]), 3)
            probes = np.arange(around - reach, around + reach + 1)
            for name, predicate in PREDICATES.items():
                expected, reply = bench.probe(stored, number, probes, predicate)
                await bench.expect_records(expected)
                await bench.expect(reply)
                for matches in matches_of(expected, len(keys), predicate):
                    COVER.hit(operator=name, side=stored.other.letter, matches=matches,
                              **bench.stalls)
            await bench.expect(bench.expire(stored, number))


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(kind=KINDS)
async def subwindows_of_every_kind(dut, kind):
    """A subwindow that grows to its end, with probes between the inserts."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, 0.4, 0.4)
    await bench.start()
    await bench.expect(bench.create(Side.LEFT, 7, PARAMS.subwindow))
    for _ in range(4):
        tuples = sorted_tuples(np_rng, kind, PARAMS.subwindow // 4)
        await bench.expect(bench.insert(Side.LEFT, 7, tuples))
        keys = bench.held[Side.LEFT, 7][1]["key"]
        probes = np.sort(np.r_[keys[:5], keys[-5:]]) if len(keys) else np.arange(3)
        expected, reply = bench.probe(Side.LEFT, 7, probes, PREDICATES["="])
        await bench.expect_records(expected)
        await bench.expect(reply)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_reset_forgets_everything(dut):
    """After a reset in the middle of a command the core is empty and obeys."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng)
    await bench.start()
    tuples = sorted_tuples(np_rng, "uniform", 14)
    for number in range(6):
        bench.create(Side.LEFT, 1, 30)
        bench.insert(Side.LEFT, 1, tuples)
        bench.probe(Side.LEFT, 1, tuples["key"], PREDICATES["band"])
        await ClockCycles(dut.clk, 12 + 23 * number)
        await bench.stop()
        bench = Bench(dut, rng)
        await bench.reset()
        await bench.expect(bench.expire(Side.LEFT, 1))
        await bench.expect(bench.create(Side.LEFT, 1, 30))
        await bench.expect(bench.insert(Side.LEFT, 1, tuples))
        expected, reply = bench.probe(Side.LEFT, 1, tuples["key"], PREDICATES["="])
        await bench.expect_records(expected)
        await bench.expect(reply)


@cocotb.test()
async def every_bin_was_hit(dut):
    """The functional coverage of this bench."""
    COVER.check()
    COMMANDS.check()

"""In-simulator tests of hw.rtl.punctuator.Punctuator and hw.rtl.combiner.Combiner behind it."""

import cocotb
from cocotb.triggers import ClockCycles

from hw.rtl.collection_tree import MOST_STARS
from hw.spec import NOT, JoinParams
from hw.spec.commands import Opcode
from sim.coverage import Coverage
from sim.elaborate import bench_settings
from sim.probing import StreamBench
from sim.punctuation import STAR, command_events, context_of, tagged
from sim.punctuation_top import PunctuationTop
from sim.scoreboard import same_tuples
from sim.stimulus import STALL_RATES, generator

PARAMS = JoinParams(**bench_settings()["params"])
TOP = PunctuationTop(PARAMS).signature.members
#: Between two stars: none, strict, a few, more than a token can count.
STARS = (0, 1, 3, 2 * MOST_STARS)
HITS = ("none", "some", "all")
COVER = Coverage("punctuator", star_every=STARS, hits=HITS, stall_in=STALL_RATES,
                 stall_out=STALL_RATES)


def records_of(rng, hits, count):
    """(start, end) of records, of which the chosen ones are empty."""
    records = []
    for _ in range(count):
        start = rng.randrange(100)
        found = hits == "all" or (hits == "some" and rng.random() < 0.3)
        end = start + (rng.randrange(1, 9) if found else 0)
        # A label makes of an empty record one that names everything.
        records.append((start, end | int(NOT) if found and rng.random() < 0.2 else end))
    return records


def words_of(records):
    """Records as wide tokens, now and then a short one, and the end."""
    lanes, nothing = PARAMS.lanes, {"start": 0, "end": 0}
    words = []
    for first in range(0, len(records), lanes):
        some = [{"start": s, "end": e} for s, e in records[first : first + lanes]]
        words.append({"data": some + [nothing] * (lanes - len(some)), "count": len(some), "end": 0})
    return [*words, {"data": [nothing] * lanes, "count": 0, "end": 1}]


def command_of(rng, probe, star_every, hits):
    """A command's context, its records and its reply."""
    context = context_of(int(probe), rng.randrange(2), star_every, rng.randrange(2))
    records = records_of(rng, hits, rng.choice((0, 1, 7, 40)))
    opcode = Opcode.PROBE if probe else rng.choice((Opcode.CREATE, Opcode.INSERT))
    reply = {"opcode": int(opcode), "side": context["side"], "subwindow": rng.randrange(99),
             "status": rng.randrange(8), "rows": rng.randrange(64)}
    return context, records, reply


class Bench(StreamBench):
    """Commands of a core, and the events that its results must be."""

    def __init__(self, dut, rng, stall_in, stall_out):
        super().__init__(dut, TOP, rng, stall_in, stall_out)
        self.expected = []

    def command(self, context, records, reply):
        self.sides.send([context["side"]])
        self.contexts.send([context])
        if context["probe"]:
            self.records.send(words_of(records))
        self.replies.send([reply])
        *events, last = command_events(context, records, reply, core=1)
        assert last == STAR
        inner = [(STAR, context["side"], 0) if event == STAR else event for event in events]
        self.expected += [*inner, (STAR, context["side"], 1)]

    async def finished(self):
        while len(tagged(self.answers.received)) < len(self.expected):
            await ClockCycles(self.dut.clk, 4)
        await ClockCycles(self.dut.clk, 8)
        same_tuples(map(str, tagged(self.answers.received)), map(str, self.expected), "events")


@cocotb.test(timeout_time=1000, timeout_unit="us")
@cocotb.parametrize(star_every=STARS, hits=HITS, stall_in=STALL_RATES, stall_out=STALL_RATES)
async def records_come_between_their_stars(dut, star_every, hits, stall_in, stall_out):
    """Probes and other commands back to back: every event, in order, with its side."""
    _, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    for number in range(4):
        bench.command(*command_of(rng, number != 1, star_every, hits))
    await bench.finished()
    COVER.hit(star_every=star_every, hits=hits, stall_in=stall_in, stall_out=stall_out)


@cocotb.test(timeout_time=400, timeout_unit="us")
async def a_reset_forgets_the_command(dut):
    """After a reset among records, before a reply or before a star the next command is whole."""
    _, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, 0.0, 0.5)
    await bench.start()
    for number in range(12):
        for _ in range(3):
            bench.command(*command_of(rng, True, rng.choice(STARS), "some"))
        await ClockCycles(dut.clk, 3 + 5 * number)
        await bench.stop()
        bench = Bench(dut, rng, 0.2, 0.2)
        await bench.reset()
        bench.command(*command_of(rng, number % 2, 3, "some"))
        await bench.finished()


@cocotb.test()
async def every_bin_was_hit(dut):
    """Last: the functional coverage of this bench."""
    COVER.check()

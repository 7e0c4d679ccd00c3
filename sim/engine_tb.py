"""In-simulator tests of hw.rtl.engine.Engine: several cores answer as one, in the asked order."""

from itertools import product

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from hw.rtl.combiner import answer_layout
from hw.rtl.engine_words import word_token
from hw.spec import Band, JoinParams, Predicate, Side
from hw.spec.commands import Opcode, Status
from sim.coverage import Coverage
from sim.design_bench import DesignBench
from sim.elaborate import bench_settings
from sim.engine_commands import EngineCommands, share_of
from sim.probing import MATCHES, PREDICATES, expected_records, matches_of
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
OPERATORS = Coverage(
    "engine operators", operator=PREDICATES, side=("l", "r"), matches=MATCHES,
    stall_in=STALL_RATES, stall_out=STALL_RATES,
)
COMMANDS = Coverage(
    "engine commands", opcode=[opcode.name for opcode in Opcode], refused=(False, True),
    stall_in=STALL_RATES, stall_out=STALL_RATES,
)


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
    return tuples_of(np.sort(np_rng.integers(0, 300, count)), first)


def tuples_of(keys, first=0):
    tuples = np.zeros(len(keys), [("key", "<i4"), ("rid", "<u4")])
    tuples["key"] = keys
    tuples["rid"] = first + np.arange(len(keys))
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


#: By their number, keys of which probes around the second value match none, one and many.
HELD = {1: ([-8], -8), 2: ([-8, 8], -8), 6: ([0, 0, 0, 2, -8, 8], 0)}


def expected_matches(shares, probes, predicate, side):
    """(probe, core, position) of every match, by the reference."""
    found = []
    for core, tuples in enumerate(shares):
        for position, key in enumerate(tuples["key"].tolist()):
            records = expected_records([key], probes, predicate, side)
            counts = matches_of(records, 1, predicate)
            found += [(n, core, position) for n, count in enumerate(counts) if count != "empty"]
    return found


@cocotb.test(timeout_time=8, timeout_unit="ms")
@cocotb.parametrize(stall_in=STALL_RATES, stall_out=STALL_RATES)
async def every_operator_in_both_directions(dut, stall_in, stall_out):
    """Probes of all predicates, on subwindows that match none, one and many, back to back."""
    _, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    make = EngineCommands(PARAMS)
    commands = 0
    for stored, rows in product(Side, HELD):
        held, around = HELD[rows]
        held = np.array(rng.sample(held, len(held)))
        shares = [share_of(tuples_of(held), CORES, core) for core in range(CORES)]
        probes = around + np.array([-4, -2, -1, 0, 1, 2, 4])
        scan = -(-rows // CORES)
        bench.words.send(make.words(Opcode.CREATE, stored, rows, 16))
        bench.words.send(make.insert(stored, rows, tuples_of(held)))
        for predicate in PREDICATES.values():
            bench.words.send(make.probe(stored, rows, probes, predicate, scan=scan))
        bench.words.send(make.words(Opcode.EXPIRE, stored, rows, 0))
        answers = (await bench.events(commands + len(PREDICATES) + 3))[commands:]
        commands += len(answers)
        for (name, predicate), events in zip(PREDICATES.items(), answers[2:-1], strict=True):
            found = [match[1:] for match in matches(events, scan)]
            expected = expected_matches(shares, probes, predicate, stored.other)
            same_multiset(found, expected, f"matches of {name}")
            for count in np.bincount([match[0] for match in expected], minlength=len(probes)):
                OPERATORS.hit(operator=name, side=stored.other.letter, stall_in=stall_in,
                              stall_out=stall_out, matches=MATCHES[min(count, 2)])


@cocotb.test(timeout_time=2000, timeout_unit="us")
@cocotb.parametrize(stall_in=STALL_RATES, stall_out=STALL_RATES)
async def every_command_while_the_engine_is_busy(dut, stall_in, stall_out):
    """Commands queued without waiting: every core obeys each in its turn, or refuses it."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    make = EngineCommands(PARAMS)
    tuples, probes = batch_of(np_rng, 8, 0), np.arange(3)
    side = Side(rng.randrange(2))
    sent = [
        (Opcode.CREATE, False, make.words(Opcode.CREATE, side, 1, 8)),
        (Opcode.CREATE, True, make.words(Opcode.CREATE, side, 2, 8)),
        (Opcode.INSERT, True, make.insert(side, 3, tuples)),
        (Opcode.INSERT, False, make.insert(side, 1, tuples)),
        (Opcode.INSERT, True, make.insert(side, 1, tuples)),
        (Opcode.PROBE, True, make.probe(side.other, 1, probes, BAND, scan=2)),
        (Opcode.PROBE, False, make.probe(side, 1, probes, BAND, scan=2)),
        (Opcode.EXPIRE, True, make.words(Opcode.EXPIRE, side, 2, 0)),
        (Opcode.EXPIRE, False, make.words(Opcode.EXPIRE, side, 1, 0)),
    ]
    for _, _, words in sent:
        bench.words.send(words)
    for (opcode, refused, _), events in zip(sent, await bench.events(len(sent)), strict=True):
        replies = [e["record"]["end"] for e in events if isinstance(e, dict) and e["reply"]]
        assert [reply >> 8 for reply in replies] == [opcode] * CORES
        assert [bool(reply & Status.REFUSED) for reply in replies] == [refused] * CORES
        COMMANDS.hit(opcode=opcode.name, refused=refused, stall_in=stall_in, stall_out=stall_out)


@cocotb.test(timeout_time=1000, timeout_unit="us")
async def a_reset_forgets_everything(dut):
    """After a reset in the middle of a command every core is empty and the engine obeys."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, 0.0, 0.3)
    await bench.start()
    make = EngineCommands(PARAMS)
    batch, keys = batch_of(np_rng, 11, 0), np.sort(np_rng.integers(0, 300, 8))
    scan = -(-len(batch) // CORES)
    sent = [
        make.words(Opcode.CREATE, Side.LEFT, 5, 16), make.insert(Side.LEFT, 5, batch),
        make.probe(Side.LEFT, 5, keys, BAND, star_every=1, ordered=1, scan=scan),
    ]
    for number in range(10):
        for words in sent:
            bench.words.send(words)
        await ClockCycles(dut.clk, 8 + 13 * number)
        await bench.stop()
        bench = Bench(dut, rng, 0.2, 0.2)
        await bench.reset()
        for words in sent:
            bench.words.send(words)
        answers = await bench.events(len(sent))
        check_matches(
            matches(answers[2], scan), [batch, batch[:0]], keys, scan, 1, "strict inner"
        )


@cocotb.test()
async def every_bin_was_hit(dut):
    """Last: the functional coverage of this bench."""
    COVER.check()
    OPERATORS.check()
    COMMANDS.check()

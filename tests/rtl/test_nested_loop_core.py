"""hw.rtl.nested_loop_core in Amaranth's own simulator: all comparisons, in order of arrival."""

import numpy as np
import pytest

from hw.rtl.nested_loop_core import NestedLoopCore
from hw.spec import JoinParams, Side
from hw.spec.commands import Opcode, Status
from hw.spec.predicates import registers
from sim.engine_commands import NO_BAND
from sim.probing import PREDICATES, expected_records, matches_of, wide_frame
from tests.rtl.helpers import no_pause, pauses, put_words, run, stream_get, stream_put

LEFT, RIGHT = Side.LEFT, Side.RIGHT
PARAMS = JoinParams(
    subwindow=16, partitions=4, insert_buffer=16, lanes=2, mergers=2, probers=2, bands=4
)
KEYS = [3, -1, 3, 9, 0]


class Core:
    """A core, its commands and what it answers to each: records and reply."""

    def __init__(self):
        self.dut = NestedLoopCore(PARAMS)
        self.commands, self.tuples, self.probes = [], [], []

    def command(self, opcode, side, subwindow, count=0, scan=0, **fields):
        none = {"bands": [NO_BAND] * PARAMS.bands, "band_count": 0, "negated": 0, "explicit": 0}
        command = none | {"opcode": opcode, "side": side, "subwindow": subwindow, "count": count}
        self.commands.append((command | fields, scan))

    def insert(self, side, subwindow, keys):
        self.command(Opcode.INSERT, side, subwindow, len(keys))
        self.tuples.append([(key, n) for n, key in enumerate(keys)])

    def probe(self, side, subwindow, keys, predicate, scan):
        words = registers(predicate, side.other, PARAMS.key_bits)
        bands = [{name: int(word[name]) for name in NO_BAND} for word in words]
        bands += [NO_BAND] * (PARAMS.bands - len(bands))
        self.command(Opcode.PROBE, side, subwindow, len(keys), scan, bands=bands,
                     band_count=len(words), negated=int(predicate.negated))
        self.probes.append(keys)

    def seek(self, side, subwindow, intervals, scan):
        """A probe with intervals of its own instead of a predicate."""
        self.command(Opcode.PROBE, side, subwindow, len(intervals), scan, explicit=1)
        self.probes.append([bound for interval in intervals for bound in interval])

    def run(self, pause=(no_pause, no_pause)):
        """(records, reply) of every command."""
        dut, answers = self.dut, []

        async def command(ctx):
            for token, scan in self.commands:
                ctx.set(dut.scan, scan)
                await stream_put(ctx, dut.commands, token)

        async def store(ctx):
            for tuples in self.tuples:
                await put_words(ctx, dut.tuples, tuples, PARAMS.lanes, pause[0])

        async def ask(ctx):
            for word in [word for keys in self.probes for word in wide_frame(keys, PARAMS.lanes)]:
                await stream_put(ctx, dut.probes, word, pause[0]())

        async def receive(ctx):
            for token, _ in self.commands:
                records = []
                while token["opcode"] == Opcode.PROBE:
                    word = await stream_get(ctx, dut.records, pause[1]())
                    if word.end:
                        break
                    assert word.count == 1
                    records.append((word.data[0].start, word.data[0].end))
                reply = await stream_get(ctx, dut.replies, pause[1]())
                assert (reply.opcode, reply.side) == (token["opcode"], token["side"])
                assert reply.subwindow == token["subwindow"]
                answers.append((records, (reply.rows, Status(int(reply.status)))))

        run(dut, command, store, ask, receive, cycles=8_000)
        return answers


def compared(keys, probes, scan, holds):
    """A record for each of `scan` comparisons of each probe."""
    return [
        (n, n + (n < len(keys) and bool(holds(keys[n], probe))))
        for probe in probes for n in range(scan)
    ]


def holds(predicate, side):
    def of(key, probe):
        (found,) = matches_of(expected_records([key], [probe], predicate, side), 1, predicate)
        return found != "empty"

    return of


@pytest.mark.parametrize("stored", Side)
@pytest.mark.parametrize("name", PREDICATES)
def test_every_tuple_is_compared_with_every_probe(name, stored):
    """In order of arrival, also more comparisons than there are tuples."""
    core, predicate, probes = Core(), PREDICATES[name], [-8, 0, 2, 3, 4, 10]
    core.command(Opcode.CREATE, stored, 8, 9)
    core.insert(stored, 8, KEYS)
    core.probe(stored, 8, probes, predicate, 7)
    answers = core.run((pauses(1), pauses(2)))
    assert answers[2][0] == compared(KEYS, probes, 7, holds(predicate, stored.other))
    assert answers[2][1] == (5, Status(0))


def test_intervals_may_come_instead_of_probes():
    core = Core()
    core.command(Opcode.CREATE, LEFT, 8, 9)
    core.insert(LEFT, 8, KEYS)
    core.seek(LEFT, 8, [(0, 3), (3, 9), (4, 1), (-5, 20)], 5)
    expected = compared(KEYS, [(0, 3), (3, 9), (4, 1), (-5, 20)], 5,
                        lambda key, interval: interval[0] <= key <= interval[1])
    assert core.run()[2][0] == expected


def test_streams_are_kept_apart_and_grow():
    core, equal = Core(), PREDICATES["="]
    for side, keys in ((LEFT, [1, 2, 3]), (RIGHT, [5]), (LEFT, [4]), (RIGHT, [6, 7])):
        if side not in [command["side"] for command, _ in core.commands]:
            core.command(Opcode.CREATE, side, 3, 16)
        core.insert(side, 3, keys)
    core.probe(LEFT, 3, np.arange(9), equal, 4)
    core.command(Opcode.EXPIRE, LEFT, 3)
    core.probe(RIGHT, 3, np.arange(9), equal, 3)
    answers = core.run()
    left, right = [1, 2, 3, 4], [5, 6, 7]
    assert answers[-3] == (compared(left, range(9), 4, holds(equal, RIGHT)), (4, Status(0)))
    assert answers[-1] == (compared(right, range(9), 3, holds(equal, LEFT)), (3, Status(0)))


def test_bands_of_the_predicate_before_count_no_more():
    core, probes = Core(), [0, 2, 10]
    core.command(Opcode.CREATE, LEFT, 8, 9)
    core.insert(LEFT, 8, KEYS)
    for name in ("bands", "="):
        core.probe(LEFT, 8, probes, PREDICATES[name], 5)
    assert core.run()[3][0] == compared(KEYS, probes, 5, holds(PREDICATES["="], RIGHT))


def test_what_cannot_be_is_refused_and_changes_nothing():
    core, refused, empty = Core(), Status.REFUSED, Status.OLDEST_EMPTY
    full = Status.NEWEST_FULL
    expected = []

    def then(rows, status):
        expected.append((rows, status))

    core.insert(LEFT, 1, [1, 2, 3])
    then(0, refused | empty)
    core.command(Opcode.CREATE, LEFT, 1, PARAMS.subwindow + 1)
    then(0, refused | empty)
    core.command(Opcode.CREATE, LEFT, 1, 4)
    then(0, empty)
    core.command(Opcode.CREATE, LEFT, 2, 4)
    then(0, refused | empty)
    core.insert(LEFT, 1, [1, 2, 3])
    then(3, Status(0))
    core.insert(LEFT, 1, [4, 5])
    then(0, refused)
    core.insert(LEFT, 2, [4])
    then(0, refused)
    core.insert(LEFT, 1, [7])
    then(4, full)
    core.probe(LEFT, 2, [1], PREDICATES["="], 4)
    then(0, refused | full)
    core.probe(RIGHT, 1, [1], PREDICATES["="], 1)
    then(0, refused | empty)
    core.command(Opcode.EXPIRE, LEFT, 2)
    then(0, refused | full)
    core.command(Opcode.EXPIRE, RIGHT, 1)
    then(0, refused | empty)
    core.probe(LEFT, 1, [0, 6], PREDICATES["="], 4)
    then(4, full)
    core.command(Opcode.EXPIRE, LEFT, 1)
    then(4, empty)
    core.command(Opcode.EXPIRE, LEFT, 1)
    then(0, refused | empty)
    core.command(Opcode.CREATE, LEFT, 2, 4)
    then(0, empty)
    core.command(7, LEFT, 2)
    then(0, refused | empty)
    answers = core.run()
    assert [reply for _, reply in answers] == expected
    assert answers[8][0] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert answers[12][0] == compared([1, 2, 3, 7], [0, 6], 4, holds(PREDICATES["="], RIGHT))

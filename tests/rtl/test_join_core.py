"""JoinCore in Amaranth's simulator: commands, status bits, statistics."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from hw.rtl.block_core import BlockCore
from hw.rtl.join_core import core_address_bits
from hw.spec import Band, JoinParams, Predicate, Side
from hw.spec.commands import Opcode, Status
from hw.spec.predicates import registers
from hw.spec.reference import probe_records
from sim.simulated_core import SimulatedCore
from tests.rtl.helpers import put_words, run, stream_get, stream_put

PARAMS = JoinParams(
    subwindow=32, partitions=4, lanes=2, probers=2, mergers=2, insert_buffer=16, bands=2
)
BAND = Predicate((Band(-2, 1),))


class Driver:
    """Sends commands to a core and takes its replies."""

    def __init__(self, core, ctx):
        self.core, self.ctx = core, ctx

    async def command(self, opcode, side, subwindow, count=0, **fields):
        token = {"opcode": opcode, "side": side, "subwindow": subwindow, "count": count, **fields}
        await stream_put(self.ctx, self.core.commands, token)

    async def reply(self):
        reply = await stream_get(self.ctx, self.core.replies)
        return Status(reply.status), reply.rows

    async def create(self, side, subwindow, count):
        await self.command(Opcode.CREATE, side, subwindow, count)
        return await self.reply()

    async def expire(self, side, subwindow):
        await self.command(Opcode.EXPIRE, side, subwindow)
        return await self.reply()

    async def insert(self, side, subwindow, tuples):
        await self.command(Opcode.INSERT, side, subwindow, len(tuples))
        lanes = PARAMS.lanes
        for first in range(0, len(tuples), lanes):
            data = [{"key": key, "rid": rid} for key, rid in tuples[first : first + lanes]]
            count = len(data)
            data += [{"key": 0, "rid": 0}] * (lanes - count)
            await stream_put(self.ctx, self.core.tuples, {"data": data, "count": count})
        await stream_put(self.ctx, self.core.tuples, {"count": 0, "end": 1})
        return await self.reply()

    async def probe(self, stored, subwindow, keys, predicate, dense=0):
        words = registers(predicate, stored.other, 32)
        bands = [{name: int(word[name]) for name in word.dtype.names if name != "unused"}
                 for word in words]
        await self.command(
            Opcode.PROBE, stored, subwindow, len(keys), dense=dense, chunk_words=1,
            bands=bands, band_count=len(words), negated=int(predicate.negated),
        )
        lanes, records = PARAMS.lanes, []
        for first in range(0, len(keys), lanes):
            data = list(keys[first : first + lanes])
            word = {"data": data + [0] * (lanes - len(data)), "count": len(data)}
            await stream_put(self.ctx, self.core.probes, word)
        await stream_put(self.ctx, self.core.probes, {"count": 0, "end": 1})
        while not (word := await stream_get(self.ctx, self.core.records)).end:
            records += [(word.data[n].start, word.data[n].end) for n in range(word.count)]
        return records, *await self.reply()


def drive(script, make=SimulatedCore, params=PARAMS, **options):
    core = make(params, **options)

    async def process(ctx):
        await script(Driver(core, ctx))

    run(core, process, cycles=2_000)


def tuples_of(keys, first_rid=0):
    order = np.argsort(keys, kind="stable")
    return [(int(keys[n]), first_rid + int(n)) for n in order]


def records_of(keys, probes, side, predicate):
    return [run for key in probes for run in probe_records(sorted(keys), key, side, predicate)]


#: A partition of one memory word: other probers, and memory that is block RAM.
BY_WORD = replace(PARAMS, partitions=16)
#: A core all over a chip.
FAR = partial(BlockCore, hops=1)


@pytest.mark.parametrize(
    ("make", "params", "design"),
    [(SimulatedCore, PARAMS, "wide"), (SimulatedCore, BY_WORD, "narrow"),
     (BlockCore, BY_WORD, "wide"), (BlockCore, BY_WORD, "narrow"), (FAR, BY_WORD, "wide")],
)
def test_a_subwindow_lives(make, params, design):
    rng = np.random.default_rng(2)
    first, second = rng.integers(-9, 9, (2, 9)).tolist()
    probes = list(range(-12, 12, 2))

    async def script(core):
        assert await core.create(Side.LEFT, 5, 20) == (Status.OLDEST_EMPTY, 0)
        assert await core.insert(Side.LEFT, 5, tuples_of(first)) == (Status(0), 9)
        assert await core.insert(Side.LEFT, 5, tuples_of(second, 9)) == (Status(0), 18)
        for dense in (0, 1):
            records, status, rows = await core.probe(Side.LEFT, 5, probes, BAND, dense)
            assert records == records_of(first + second, probes, Side.RIGHT, BAND)
            assert (status, rows) == (Status(0), 18)
        full = await core.insert(Side.LEFT, 5, tuples_of([1, 2], 18))
        assert full == (Status.NEWEST_FULL, 20)
        assert await core.expire(Side.LEFT, 5) == (Status.OLDEST_EMPTY, 0)

    drive(script, make, params, design=design)


def test_streams_and_subwindows_are_apart():
    async def script(core):
        await core.create(Side.LEFT, 1, 8)
        await core.create(Side.RIGHT, 1, 8)
        await core.create(Side.LEFT, 2, 2)
        await core.insert(Side.LEFT, 1, [(5, 0)])
        await core.insert(Side.RIGHT, 1, [(7, 0), (8, 1)])
        status, _ = await core.insert(Side.LEFT, 2, [(9, 0), (9, 1)])
        assert status == Status.NEWEST_FULL
        equal = Predicate((Band(0, 0),))
        found = {}
        for side, number in ((Side.LEFT, 1), (Side.RIGHT, 1), (Side.LEFT, 2)):
            found[side, number], *_ = await core.probe(side, number, [5, 7, 9], equal)
        assert found == {
            (Side.LEFT, 1): [(0, 1), (1, 1), (1, 1)],
            (Side.RIGHT, 1): [(0, 0), (0, 1), (2, 2)],
            (Side.LEFT, 2): [(0, 0), (0, 0), (0, 2)],
        }

    drive(script)


@pytest.mark.parametrize(("make", "params"), [(SimulatedCore, PARAMS), (FAR, BY_WORD)])
def test_what_does_not_fit_is_refused_and_changes_nothing(make, params):
    async def script(core):
        refused = Status.REFUSED
        assert (await core.expire(Side.LEFT, 3))[0] == refused | Status.OLDEST_EMPTY
        assert (await core.insert(Side.LEFT, 3, [(1, 1)]))[0] & refused
        records, status, _ = await core.probe(Side.LEFT, 3, [1, 2, 3], BAND)
        assert records == [] and status & refused
        assert (await core.create(Side.LEFT, 3, 33))[0] & refused
        assert not (await core.create(Side.LEFT, 3, 4))[0] & refused
        assert (await core.create(Side.LEFT, 3, 4))[0] & refused
        assert (await core.insert(Side.LEFT, 3, [(n, n) for n in range(5)]))[0] & refused
        assert await core.insert(Side.LEFT, 3, [(n, n) for n in range(3)]) == (Status(0), 3)
        assert (await core.insert(Side.LEFT, 3, [(9, 9), (9, 10)]))[0] & refused
        records, *_ = await core.probe(Side.LEFT, 3, [0, 9], Predicate((Band(0, 0),)))
        assert records == [(0, 1), (3, 3)]
        await core.create(Side.RIGHT, 4, 4)
        await core.create(Side.RIGHT, 5, 4)
        assert (await core.create(Side.RIGHT, 6, 4))[0] & refused  # three slots, all taken
        await core.command(99, Side.LEFT, 3)
        assert (await core.reply())[0] & refused

    drive(script, make, params)


@pytest.mark.parametrize(("make", "params"), [(SimulatedCore, PARAMS), (FAR, BY_WORD)])
def test_what_comes_early_waits_for_its_turn(make, params):
    """Commands back to back, and all keys of theirs."""
    core = make(params)
    stored, keys = list(range(0, 20, 2)), [[3, 5, 7], [], [1, 2, 3, 4, 8, 9]]
    equal = registers(Predicate((Band(0, 0),)), Side.RIGHT, params.key_bits)[0]
    bands = [{name: int(equal[name]) for name in ("lo", "hi", "lo_bound", "hi_bound")}]
    found, replies = [], []

    async def command(ctx):
        common = {"side": 0, "band_count": 1, "bands": bands, "chunk_words": 1}
        for opcode, subwindow, count in (
            (Opcode.CREATE, 1, 20), (Opcode.INSERT, 1, len(stored)), (Opcode.PROBE, 1, 0),
            (Opcode.PROBE, 2, 0), (Opcode.PROBE, 1, 0), (Opcode.EXPIRE, 1, 0),
        ):
            said = {"opcode": int(opcode), "subwindow": subwindow, "count": count}
            await stream_put(ctx, core.commands, said | common)

    async def insert(ctx):
        await put_words(ctx, core.tuples, [(key, key) for key in stored], params.lanes)

    async def probe(ctx):
        for frame in (keys[0], keys[2], keys[2]):
            for first in range(0, len(frame), params.lanes):
                some = frame[first : first + params.lanes]
                word = {"data": some + [0] * (params.lanes - len(some)), "count": len(some)}
                await stream_put(ctx, core.probes, word)
            await stream_put(ctx, core.probes, {"count": 0, "end": 1})

    async def answer(ctx):
        for _ in keys:
            found.append([])
            while not (word := await stream_get(ctx, core.records)).end:
                found[-1] += [(word.data[n].start, word.data[n].end) for n in range(word.count)]

    async def reply(ctx):
        for _ in range(6):
            replies.append((await stream_get(ctx, core.replies)).status)

    run(core, command, insert, probe, answer, reply, cycles=2_000)
    wanted = [[(sum(k < key for k in stored), sum(k <= key for k in stored)) for key in frame]
              for frame in keys]
    assert found == wanted
    assert [bool(status & Status.REFUSED) for status in replies] == [0, 0, 0, 1, 0, 0]


def test_statistics_count_what_happened():
    async def script(core):
        await core.create(Side.LEFT, 1, 32)
        await core.insert(Side.LEFT, 1, [(n, n) for n in range(13)])
        await core.probe(Side.LEFT, 1, [1, 2, 3], Predicate((Band(0, 0), Band(5, 6))))
        statistics = core.ctx.get(core.core.statistics)
        assert statistics.tuples == 13
        assert statistics.records == 6
        assert 0 < statistics.stalled < statistics.cycles

    drive(script)


def test_slots_and_one_spare_fill_the_address():
    assert core_address_bits(PARAMS, 3) == 6
    with pytest.raises(ValueError, match=r"^slots must be one less than a power of two, not 4$"):
        core_address_bits(PARAMS, 4)

"""hw.rtl.engine in Amaranth's own simulator: several cores answer as one."""

from dataclasses import replace

import numpy as np
import pytest

from hw.rtl.block_core import BlockCore
from hw.rtl.engine import Engine
from hw.rtl.nested_loop_core import NestedLoopCore
from hw.rtl.restart import RESTART_STEPS
from hw.spec import Band, JoinParams, Predicate, Side
from hw.spec.commands import Opcode, Status
from sim.engine_commands import EngineCommands, share_of
from sim.scoreboard import merged
from sim.simulated_core import SimulatedCore
from sim.stimulus import sorted_tuples
from tests.rtl.helpers import no_pause, pauses, run, stream_get, stream_put

BAND = Predicate([Band(-40, 40)])


def small(cores):
    return JoinParams(
        subwindow=64, partitions=8, insert_buffer=32, lanes=2, mergers=2, probers=2, cores=cores
    )


def bisort(params):
    return Engine(params, lambda: SimulatedCore(params), fan_out=2)


def nested_loop(params):
    return Engine(params, lambda: NestedLoopCore(params), fan_out=2)


def answers_of(
    engine, commands, pause=(no_pause, no_pause), cycles=20_000, restart_after=()
):
    """Send commands back to back; for each its answers: lists of results between stars.

    Before that, begin so often and restart the engine after so many cycles.
    """
    words = [word for command in commands for word in command]
    answers = []
    begun = []

    async def interrupted(ctx, cycles):
        sent = 0
        for _ in range(cycles):
            ctx.set(engine.words.payload, words[sent % len(words)])
            ctx.set(engine.words.valid, 1)
            _, _, ready = await ctx.tick().sample(engine.words.ready)
            sent += ready
        ctx.set(engine.words.valid, 0)
        for restart in (1, 0):
            ctx.set(engine.restart, restart)
            for _ in range(RESTART_STEPS + engine.params.cores + 1):
                await ctx.tick()

    async def send(ctx):
        for cycles in restart_after:
            await interrupted(ctx, cycles)
        begun.append(True)
        for word in words:
            await stream_put(ctx, engine.words, word, pause[0]())

    async def receive(ctx):
        while not begun:
            ctx.set(engine.answers.ready, pause[1]() == 0)
            await ctx.tick()
        ctx.set(engine.answers.ready, 0)
        for _ in commands:
            groups, last = [[]], False
            while not last:
                token = await stream_get(ctx, engine.answers, pause[1]())
                side, last = token.side, bool(token.last)
                groups += [[] for _ in range(token.stars)]
                if token.present:
                    groups[-1].append(token.data)
            assert groups.pop() == []
            answers.append((Side(side), groups))

    run(engine, send, receive, cycles=cycles)
    return answers


def replies_of(groups):
    return sorted((r.core, r.number, r.record.start, r.record.end) for r in groups[-1] if r.reply)


def matches_of(groups, per_probe):
    """(probe, core, position) of every match, in the order in which they came."""
    return [
        (r.number // per_probe, r.core, position)
        for group in groups for r in group if not r.reply
        for position in range(r.record.start, r.record.end & 0x7FFF_FFFF)
    ]


def expected_matches(shares, keys):
    found = []
    for probe, key in enumerate(keys):
        for core, tuples in enumerate(shares):
            near = np.flatnonzero(np.abs(tuples["key"].astype(np.int64) - int(key)) <= 40)
            found += [(probe, core, int(position)) for position in near]
    return found


def scenario(params, star_every, ordered, scan=0):
    """Two batches inserted and probed; (commands, shares of each core, keys)."""
    rng = np.random.default_rng(7)
    commands = EngineCommands(params)
    cores = params.cores
    batches = []
    for first_rid, count in ((0, 11), (11, 9)):
        tuples = sorted_tuples(rng, "uniform", count, first_rid=first_rid)
        tuples["key"] %= 1000
        batches.append(np.sort(tuples, order=["key", "rid"]))
    keys = np.sort(rng.integers(0, 1000, 10))
    sent = [
        commands.words(Opcode.CREATE, Side.LEFT, 3, 40),
        *(commands.insert(Side.LEFT, 3, batch) for batch in batches),
        commands.probe(
            Side.LEFT, 3, keys, BAND, star_every=star_every, ordered=ordered, scan=scan
        ),
        commands.words(Opcode.EXPIRE, Side.LEFT, 3, 0),
    ]
    shares = [
        (share_of(batches[0], cores, core), share_of(batches[1], cores, core, len(batches[0])))
        for core in range(cores)
    ]
    return sent, shares, keys


@pytest.mark.parametrize("star_every, ordered, cores", [(0, 0, 1), (4, 0, 2), (1, 1, 2)])
def test_cores_share_what_is_stored_and_answer_as_one(star_every, ordered, cores):
    params = small(cores)
    sent, shares, keys = scenario(params, star_every, ordered)
    answers = answers_of(bisort(params), sent, (pauses(1), pauses(2)))
    stored = [merged(first, second) for first, second in shares]
    assert replies_of(answers[2][1]) == [
        (core, 3, len(tuples), Opcode.INSERT << 8) for core, tuples in enumerate(stored)
    ]
    side, groups = answers[3]
    found = matches_of(groups, 1)
    assert side is Side.LEFT
    assert sorted(found) == expected_matches(stored, keys) != []
    if star_every:
        assert len(groups) == -(-len(keys) // star_every) + (len(keys) % star_every == 0)
        for number, group in enumerate(groups):
            assert {r.number // star_every for r in group if not r.reply} <= {number}
    if ordered:
        assert found == sorted(found)


def test_a_restart_in_the_middle_of_anything_is_a_new_beginning():
    params = replace(small(2), partitions=32)
    engine = Engine(params, lambda: BlockCore(params), fan_out=2)
    sent, shares, keys = scenario(params, 1, 0)
    answers = answers_of(engine, sent, restart_after=(3, 40, 95, 150, 170, 190, 210, 240, 300))
    stored = [merged(first, second) for first, second in shares]
    assert [side for side, _ in answers] == [Side.LEFT] * len(sent)
    empty = Opcode.CREATE << 8 | Status.OLDEST_EMPTY
    assert replies_of(answers[0][1]) == [(core, 3, 0, empty) for core in range(2)]
    assert sorted(matches_of(answers[3][1], 1)) == expected_matches(stored, keys) != []


@pytest.mark.parametrize("cores", [1, 4])
def test_nested_loop_cores_give_strict_inner_order(cores):
    """With a star for every comparison, matches come in the order in which they were stored."""
    params = small(cores)
    scan = -(-20 // cores)
    sent, shares, keys = scenario(params, 1, 1, scan)
    answers = answers_of(nested_loop(params), sent, (pauses(3), pauses(4)))
    stored = [np.concatenate(share) for share in shares]
    groups = answers[3][1]
    found = matches_of(groups, scan)
    assert sorted(found) == expected_matches(stored, keys) != []
    arrival = [(probe, position * cores + core) for probe, core, position in found]
    assert arrival == sorted(arrival)


def test_stars_are_tagged_with_their_stream():
    params = small(2)
    commands = EngineCommands(params)
    sent = [
        commands.words(Opcode.CREATE, side, number, 8)
        for number, side in enumerate((Side.LEFT, Side.RIGHT, Side.RIGHT, Side.LEFT))
    ]
    sent.append(commands.probe(Side.RIGHT, 1, [1, 2, 3], BAND, star_every=1))
    answers = answers_of(nested_loop(params), sent)
    sides = [side for side, _ in answers]
    assert sides == [Side.LEFT, Side.RIGHT, Side.RIGHT, Side.LEFT, Side.RIGHT]

# amaranth: UnusedElaboratable=no
"""hw.rtl.core_input in Amaranth's own simulator: each core's share of what is broadcast."""

import numpy as np
import pytest

from hw.rtl.core_input import CoreInput
from hw.spec import Band, JoinParams, Predicate, Side
from hw.spec.commands import Opcode
from sim.engine_commands import EngineCommands, share_of
from sim.stimulus import sorted_tuples
from tests.rtl.helpers import get_words, no_pause, pauses, run, stream_get, stream_put

BAND = Predicate([Band(-40, 40)])


def small(cores, lanes):
    return JoinParams(
        subwindow=64, partitions=8, insert_buffer=32, lanes=lanes, mergers=2, probers=2, cores=cores
    )


def batches_of(sizes):
    rng = np.random.default_rng(5)
    return [sorted_tuples(rng, "uniform", size) for size in sizes]


def scenario(params):
    """(words of each command, what it is) of both streams in turns, and their batches."""
    commands = EngineCommands(params)
    batches = batches_of((7, 0, 2, 4, 6, 3))
    keys = [3, -9, 40, 5, 6]
    left, right = Side.LEFT, Side.RIGHT
    sent = [
        commands.words(Opcode.CREATE, left, 5, 13, star_every=9, scan=2),
        commands.words(Opcode.CREATE, right, 6, 3),
        *(commands.insert(side, 5 + side, batch)
          for side, batch in zip((left, right, left, right, left), batches, strict=False)),
        commands.probe(right, 6, keys, BAND, star_every=3, ordered=1, scan=11),
        commands.words(Opcode.EXPIRE, left, 5, 0),
        # A new subwindow: the turns begin anew.
        commands.words(Opcode.CREATE, left, 7, 8),
        commands.insert(left, 7, batches[5]),
        commands.probe(left, 7, keys[:0], BAND),
    ]
    return sent, batches, keys


def take(params, number, pause=(no_pause, no_pause)):
    """What a core's input makes of the scenario: contexts, commands, tuples, probes."""
    dut = CoreInput(params, number)
    sent, batches, _ = scenario(params)
    contexts, commands, tuples, probes = [], [], [], []

    async def send(ctx):
        for word in [word for words in sent for word in words]:
            await stream_put(ctx, dut.words, word, pause[0]())

    async def hear(ctx):
        for _ in sent:
            contexts.append(await stream_get(ctx, dut.contexts, pause[1]()))

    async def obey(ctx):
        for _ in sent:
            commands.append((await stream_get(ctx, dut.commands, pause[1]()), ctx.get(dut.scan)))

    async def store(ctx):
        for _ in batches:
            tuples.append(await get_words(ctx, dut.tuples, pause[1]))

    async def probe(ctx):
        for _ in range(2):
            frame = []
            while not (word := await stream_get(ctx, dut.probes, pause[1]())).end:
                frame += [int(word.data[n]) for n in range(word.count)]
            probes.append(frame)

    run(dut, send, hear, obey, store, probe, cycles=3_000)
    return contexts, commands, tuples, probes


def slow():
    return 7


STALLS = {"none": lambda: (no_pause, no_pause), "both": lambda: (pauses(1), pauses(2)),
          "sinks": lambda: (no_pause, slow)}


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize(
    "cores, number, lanes", [(1, 0, 4), (2, 0, 4), (2, 1, 2), (4, 0, 4), (4, 3, 2)]
)
def test_a_core_stores_when_it_is_its_turn(cores, number, lanes, stalls):
    params = small(cores, lanes)
    contexts, commands, tuples, probes = take(params, number, STALLS[stalls]())
    _, batches, keys = scenario(params)

    def share(batch, before=0):
        return share_of(batch, cores, number, before).tolist()

    # Of left come 7, 2 and 6 tuples, of right 0 and 4; then 3 of a new subwindow.
    expected = [share(batches[0]), share(batches[1]), share(batches[2], 7), share(batches[3]),
                share(batches[4], 9), share(batches[5])]
    assert tuples == expected
    left, right = Side.LEFT, Side.RIGHT
    room = [len(range(number, count, cores)) for count in (13, 3, 8)]
    inserted = [len(frame) for frame in expected]
    assert [(c.opcode, c.side, c.subwindow, c.count) for c, _ in commands] == [
        (Opcode.CREATE, left, 5, room[0]), (Opcode.CREATE, right, 6, room[1]),
        *((Opcode.INSERT, side, 5 + side, count)
          for side, count in zip((left, right, left, right, left), inserted, strict=False)),
        (Opcode.PROBE, right, 6, 5), (Opcode.EXPIRE, left, 5, 0),
        (Opcode.CREATE, left, 7, room[2]), (Opcode.INSERT, left, 7, inserted[5]),
        (Opcode.PROBE, left, 7, 0),
    ]
    assert [scan for _, scan in commands] == [2, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 0]
    assert probes == [keys, []]
    assert [(c.probe, c.side, c.star_every, c.ordered) for c in contexts] == [
        (0, left, 9, 0), (0, right, 0, 0), (0, left, 0, 0), (0, right, 0, 0), (0, left, 0, 0),
        (0, right, 0, 0), (0, left, 0, 0), (1, right, 3, 1), (0, left, 0, 0), (0, left, 0, 0),
        (0, left, 0, 0), (1, left, 0, 0),
    ]


def test_a_number_is_one_of_the_cores():
    with pytest.raises(ValueError) as refused:
        CoreInput(small(2, 2), 2)
    assert str(refused.value) == "number must be below the 2 cores, not 2"

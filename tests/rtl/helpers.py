"""Streams and frames in Amaranth's own simulator."""

import random

from amaranth.hdl import *
from amaranth.sim import Simulator

__all__ = [
    "run", "stream_put", "stream_get", "no_pause", "pauses",
    "put_frame", "get_frame", "put_words", "get_words",
]


def run(component, *processes, cycles=6_000):
    """Simulate until every process has returned; fail if that takes more than `cycles`."""
    simulator = Simulator(component)
    simulator.add_clock(1e-8)
    finished = []

    def tracked(process):
        async def testbench(ctx):
            await process(ctx)
            finished.append(process)

        return testbench

    for process in processes:
        simulator.add_testbench(tracked(process))

    async def deadline(ctx):
        for _ in range(cycles):
            await ctx.tick()
            if len(finished) == len(processes):
                return
        raise AssertionError(f"not finished after {cycles} cycles")

    simulator.add_testbench(deadline, background=False)
    simulator.run()


async def stream_put(ctx, stream, payload, pause=0):
    """Offer one payload until it is taken, after `pause` cycles."""
    if pause:
        await ctx.tick().repeat(pause)
    ctx.set(stream.payload, payload)
    ctx.set(stream.valid, 1)
    await ctx.tick().until(stream.ready)
    ctx.set(stream.valid, 0)


async def stream_get(ctx, stream, pause=0):
    """Take one payload, after `pause` cycles."""
    if pause:
        await ctx.tick().repeat(pause)
    ctx.set(stream.ready, 1)
    (payload,) = await ctx.tick().sample(stream.payload).until(stream.valid)
    ctx.set(stream.ready, 0)
    return payload


def no_pause():
    """A pause of no cycles."""
    return 0


def pauses(seed):
    """Pauses of 0 to 3 cycles, mostly none."""
    rng = random.Random(seed)
    return lambda: rng.choice((0, 0, 0, 1, 2, 3))


async def put_frame(ctx, stream, tuples, pause=no_pause):
    """Send (key, rid) pairs and the end token."""
    for key, rid in tuples:
        token = {"data": {"key": int(key), "rid": int(rid)}, "end": 0}
        await stream_put(ctx, stream, token, pause())
    await stream_put(ctx, stream, {"end": 1}, pause())


async def get_frame(ctx, stream, pause=no_pause):
    """Take tokens to the end of the frame; the (key, rid) pairs in it."""
    tuples = []
    while True:
        token = await stream_get(ctx, stream, pause())
        if token.end:
            return tuples
        tuples.append((token.data.key, token.data.rid))


async def put_words(ctx, stream, tuples, lanes, pause=no_pause):
    """Send (key, rid) pairs as wide tokens, and the end token."""
    for first in range(0, len(tuples), lanes):
        lane = [{"key": int(key), "rid": int(rid)} for key, rid in tuples[first : first + lanes]]
        filled = lane + [{"key": 0, "rid": 0}] * (lanes - len(lane))
        await stream_put(ctx, stream, {"data": filled, "count": len(lane), "end": 0}, pause())
    await stream_put(ctx, stream, {"end": 1}, pause())


async def get_words(ctx, stream, pause=no_pause):
    """Take wide tokens to the end of the frame; the (key, rid) pairs in them."""
    tuples = []
    while True:
        token = await stream_get(ctx, stream, pause())
        if token.end:
            return tuples
        tuples += [(token.data[n].key, token.data[n].rid) for n in range(token.count)]

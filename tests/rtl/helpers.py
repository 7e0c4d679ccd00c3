"""Streams and frames in Amaranth's own simulator."""

from amaranth.hdl import *
from amaranth.sim import Simulator

__all__ = ["run", "stream_put", "stream_get", "put_frame", "get_frame", "put_words", "get_words"]


def run(component, *processes, cycles=20_000):
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


async def stream_put(ctx, stream, payload):
    """Offer one payload until it is taken."""
    ctx.set(stream.payload, payload)
    ctx.set(stream.valid, 1)
    await ctx.tick().until(stream.ready)
    ctx.set(stream.valid, 0)


async def stream_get(ctx, stream):
    """Take one payload."""
    ctx.set(stream.ready, 1)
    (payload,) = await ctx.tick().sample(stream.payload).until(stream.valid)
    ctx.set(stream.ready, 0)
    return payload


async def put_frame(ctx, stream, tuples):
    """Send (key, rid) pairs and the end token."""
    for key, rid in tuples:
        await stream_put(ctx, stream, {"data": {"key": int(key), "rid": int(rid)}, "end": 0})
    await stream_put(ctx, stream, {"end": 1})


async def get_frame(ctx, stream):
    """Take tokens to the end of the frame; the (key, rid) pairs in it."""
    tuples = []
    while True:
        token = await stream_get(ctx, stream)
        if token.end:
            return tuples
        tuples.append((token.data.key, token.data.rid))


async def put_words(ctx, stream, tuples, lanes):
    """Send (key, rid) pairs as wide tokens, and the end token."""
    for first in range(0, len(tuples), lanes):
        lane = [{"key": int(key), "rid": int(rid)} for key, rid in tuples[first : first + lanes]]
        filled = lane + [{"key": 0, "rid": 0}] * (lanes - len(lane))
        await stream_put(ctx, stream, {"data": filled, "count": len(lane), "end": 0})
    await stream_put(ctx, stream, {"end": 1})


async def get_words(ctx, stream):
    """Take wide tokens to the end of the frame; the (key, rid) pairs in them."""
    tuples = []
    while True:
        token = await stream_get(ctx, stream)
        if token.end:
            return tuples
        tuples += [(token.data[n].key, token.data[n].rid) for n in range(token.count)]

"""Cycles of one token through SplitJoin's trees."""

from amaranth.sim import Simulator

from hw.rtl.collection_tree import CollectionTree
from hw.rtl.distribution_tree import DistributionTree, tree_depth

__all__ = ["tree_latency"]


def tree_latency(leaves, fan_out):
    """From the root to the last leaf, and from there to the root; beside them the depth."""
    down = DistributionTree(8, leaves, fan_out)
    up = CollectionTree(8, leaves, fan_out)
    return {
        "depth": tree_depth(leaves, fan_out),
        "root_to_core": _latency(down, down.i, down.o[-1], 1),
        "core_to_root": _latency(up, up.i[-1], up.o, {"stars": 0, "present": 1, "data": 1}),
    }


def _latency(tree, source, target, token):
    """From the cycle in which a token is taken to the one in which it comes out."""
    simulator = Simulator(tree)
    simulator.add_clock(1e-8)
    taken = []

    async def send(ctx):
        ctx.set(source.payload, token)
        ctx.set(source.valid, 1)
        while not (await ctx.tick().sample(source.ready))[-1]:
            pass
        ctx.set(source.valid, 0)
        cycles = 1
        while not ctx.get(target.valid):
            await ctx.tick()
            cycles += 1
        taken.append(cycles)

    simulator.add_testbench(send)
    simulator.run()
    return taken[0]

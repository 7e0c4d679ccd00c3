"""In-simulator tests of hw.rtl.distribution_tree.DistributionTree."""

import cocotb
from cocotb.triggers import ClockCycles

from sim.coverage import Coverage
from sim.design_bench import DesignBench
from sim.elaborate import bench_settings
from sim.scoreboard import same_tuples
from sim.stimulus import STALL_RATES, generator
from sim.stream_bfm import StreamSink, StreamSource, stalls

LEAVES = bench_settings()["leaves"]
COVER = Coverage("distribution tree", stall_in=STALL_RATES, stall_out=STALL_RATES,
                 slowest=("all alike", "one leaf"))


class Bench(DesignBench):
    """A tree with a source above its root and a sink below each leaf."""

    def __init__(self, dut, rng, stall_in, leaf_stalls):
        super().__init__(dut)
        self.root = StreamSource(dut, "i", pause=stalls(rng, stall_in))
        self.leaves = [
            StreamSink(dut, f"o__{n}", pause=stalls(rng, rate))
            for n, rate in enumerate(leaf_stalls)
        ]

    async def received(self, count):
        while any(len(leaf.received) < count for leaf in self.leaves):
            await ClockCycles(self.dut.clk, 1)


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(stall_in=STALL_RATES, stall_out=STALL_RATES,
                    slowest=["all alike", "one leaf"])
async def every_leaf_gets_every_word_in_order(dut, stall_in, stall_out, slowest):
    """Nothing is lost, doubled or reordered on the way to any leaf, whoever stalls."""
    _, rng = generator(cocotb.RANDOM_SEED)
    rates = [stall_out] * LEAVES
    if slowest == "one leaf":
        rates = [0.0] * LEAVES
        rates[rng.randrange(LEAVES)] = stall_out
    bench = Bench(dut, rng, stall_in, rates)
    await bench.start()
    words = [rng.randrange(1 << 16) for _ in range(60)]
    bench.root.send(words)
    await bench.received(len(words))
    await ClockCycles(dut.clk, 8)
    for number, leaf in enumerate(bench.leaves):
        same_tuples(leaf.received, words, f"words at leaf {number}")
    COVER.hit(stall_in=stall_in, stall_out=stall_out, slowest=slowest)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_reset_forgets_what_is_on_the_way(dut):
    """After a reset with words in every node only the new ones arrive."""
    _, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, 0.0, [0.9] * LEAVES)
    await bench.start()
    bench.root.send(range(40))
    await ClockCycles(dut.clk, 12)
    bench.root.stop()
    for leaf in bench.leaves:
        leaf.stop()
    fresh = Bench(dut, rng, 0.0, [0.0] * LEAVES)
    await fresh.reset()
    fresh.root.send(range(100, 110))
    await fresh.received(10)
    for leaf in fresh.leaves:
        same_tuples(leaf.received, list(range(100, 110)))


@cocotb.test()
async def every_bin_was_hit(dut):
    """Last: the functional coverage of this bench."""
    COVER.check()

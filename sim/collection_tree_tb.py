"""In-simulator tests of hw.rtl.collection_tree.CollectionTree: no order, and core by core."""

import cocotb
from cocotb.triggers import ClockCycles

from hw.rtl.collection_tree import MOST_STARS, punctuated
from sim.coverage import Coverage
from sim.design_bench import DesignBench
from sim.elaborate import bench_settings
from sim.punctuation import STAR, events_of, tokens_of
from sim.scoreboard import same_multiset, same_tuples
from sim.stimulus import STALL_RATES, generator
from sim.stream_bfm import StreamSink, StreamSource, stalls

LEAVES = bench_settings()["leaves"]
TOKEN = punctuated(16)
#: Results of a leaf between two stars: none at all, few, and one leaf that has them all.
SHAPES = {"empty": (0,), "few": (0, 0, 1, 3), "one leaf": (0,)}
GROUPS = 24
COVER = Coverage("collection tree", shape=[*SHAPES], ordered=(0, 1), stall_in=STALL_RATES,
                 stall_out=STALL_RATES)


class Bench(DesignBench):
    """A tree with a source at each leaf and a sink at its root."""

    def __init__(self, dut, rng, stall_in=0.0, stall_out=0.0):
        super().__init__(dut)
        self.leaves = [
            StreamSource(dut, f"i__{n}", shape=TOKEN, pause=stalls(rng, stall_in))
            for n in range(LEAVES)
        ]
        self.root = StreamSink(dut, "o", shape=TOKEN, pause=stalls(rng, stall_out))

    async def groups(self, count):
        """What came between stars, after so many of them."""
        while events_of(self.root.received).count(STAR) < count:
            await ClockCycles(self.dut.clk, 4)
        groups = [[]]
        for event in events_of(self.root.received):
            if event == STAR:
                groups.append([])
            else:
                groups[-1].append(event)
        assert groups.pop() == [], "something follows the last star"
        return groups


def results_of(rng, shape):
    """sent[leaf][group]: numbered results."""
    sent = [
        [[leaf << 12 | group << 4 | n for n in range(rng.choice(SHAPES[shape]))]
         for group in range(GROUPS)]
        for leaf in range(LEAVES)
    ]
    if shape == "one leaf":
        leaf = rng.randrange(LEAVES)
        sent[leaf] = [[leaf << 12 | group << 4 | n for n in range(2)] for group in range(GROUPS)]
    return sent


@cocotb.test(timeout_time=1000, timeout_unit="us")
@cocotb.parametrize(shape=[*SHAPES], ordered=[0, 1], stall_in=STALL_RATES, stall_out=STALL_RATES)
async def stars_part_the_results(dut, shape, ordered, stall_in, stall_out):
    """A star for a star of each leaf; between two, all results, and ordered those leaf by leaf."""
    _, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    sent = results_of(rng, shape)
    for leaf, groups in zip(bench.leaves, sent, strict=True):
        events = [event for group in groups for event in (*group, STAR)]
        leaf.send(tokens_of(events, rng.choice((1, 3, MOST_STARS)), ordered))
    came = await bench.groups(GROUPS)
    for number, group in enumerate(came):
        expected = [result for groups in sent for result in groups[number]]
        compare = same_tuples if ordered else same_multiset
        compare(group, expected, f"results before star {number}")
    COVER.hit(shape=shape, ordered=ordered, stall_in=stall_in, stall_out=stall_out)


@cocotb.test(timeout_time=400, timeout_unit="us")
async def a_slow_leaf_holds_up_the_star_and_loses_nothing(dut):
    """While one leaf is silent the others fill their queues; then everything comes."""
    _, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, 0.0, 0.4)
    await bench.start()
    sent = results_of(rng, "few")
    for leaf, groups in zip(bench.leaves[1:], sent[1:], strict=True):
        leaf.send(tokens_of([e for group in groups for e in (*group, STAR)], 1))
    await ClockCycles(dut.clk, 300)
    assert events_of(bench.root.received).count(STAR) == 0
    bench.leaves[0].send(tokens_of([e for group in sent[0] for e in (*group, STAR)], 1))
    for number, group in enumerate(await bench.groups(GROUPS)):
        same_multiset(group, [result for groups in sent for result in groups[number]])


@cocotb.test(timeout_time=400, timeout_unit="us")
async def a_reset_forgets_what_is_on_the_way(dut):
    """After a reset with results in queues and nodes, and stars of some leaves counted, only what
    is sent from then on arrives."""
    _, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, 0.0, 0.9)
    await bench.start()
    for number in range(8):
        for leaf, groups in zip(bench.leaves, results_of(rng, "few"), strict=True):
            events = [event for group in groups for event in (*group, STAR)]
            leaf.send(tokens_of(events, rng.choice((1, 3)), number % 2))
        await ClockCycles(dut.clk, 3 + 7 * number)
        for end in (*bench.leaves, bench.root):
            end.stop()
        bench = Bench(dut, rng, 0.2, 0.2 if number < 7 else 0.0)
        await bench.reset()
        sent = results_of(rng, "few")
        for leaf, groups in zip(bench.leaves, sent, strict=True):
            leaf.send(tokens_of([e for group in groups for e in (*group, STAR)], 1))
        for place, group in enumerate(await bench.groups(GROUPS)):
            same_multiset(group, [result for groups in sent for result in groups[place]])


@cocotb.test()
async def every_bin_was_hit(dut):
    """Last: the functional coverage of this bench."""
    COVER.check()

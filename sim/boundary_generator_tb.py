"""In-simulator tests of hw.rtl.boundary_generator.BoundaryGenerator."""

import cocotb
from cocotb.triggers import ClockCycles

from hw.rtl.boundary_generator import BoundaryGenerator
from hw.spec import JoinParams, Side
from hw.spec.tuples import key_limits
from sim.coverage import Coverage
from sim.elaborate import bench_settings
from sim.probing import PREDICATES, StreamBench, frame, register_bits
from sim.stimulus import KINDS, STALL_RATES, generator, keys

PARAMS = JoinParams(key_bits=bench_settings()["key_bits"])
TOP = BoundaryGenerator(PARAMS).signature.members
COVER = Coverage(
    "boundary generator", operator=PREDICATES, side=("l", "r"), kind=KINDS, stall_in=STALL_RATES,
    stall_out=STALL_RATES,
)


class Bench(StreamBench):
    """A boundary generator."""

    def __init__(self, dut, rng, stall_in=0.0, stall_out=0.0):
        super().__init__(dut, TOP, rng, stall_in, stall_out)

    async def ask(self, predicate, side):
        bits, count = register_bits(predicate, side, PARAMS.key_bits, TOP["bands"].shape)
        await self.set(bands=bits, band_count=count, explicit=0)

    async def expect(self, probes, predicate, side):
        """The spec's closed intervals; an empty one may lie anywhere, with its bounds in order."""
        tokens = await self.bounds.frame()
        wanted = predicate.intervals(side, probes).reshape(-1).tolist()
        assert len(tokens) == len(wanted)
        for token, (lo, hi) in zip(tokens, wanted, strict=True):
            found = (token["data"]["lo"], token["data"]["hi"])
            assert found[0] <= found[1]
            assert found == (lo, hi + 1) if lo <= hi else found[0] == found[1]


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall_in=STALL_RATES, stall_out=STALL_RATES)
async def every_operator_gives_the_specs_intervals(dut, stall_in, stall_out):
    """All predicates from both sides, back-to-back frames of every kind of keys."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    for name, predicate in PREDICATES.items():
        for side in Side:
            await bench.ask(predicate, side)
            batches = {kind: keys(np_rng, kind, 6, PARAMS.key_bits) for kind in KINDS}
            for probes in batches.values():
                bench.probes.send(frame(probes.tolist()))
            for kind, probes in batches.items():
                await bench.expect(probes, predicate, side)
                COVER.hit(operator=name, side=side.letter, kind=kind, stall_in=stall_in,
                          stall_out=stall_out)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(stall=STALL_RATES)
async def explicit_intervals_pass(dut, stall):
    """Pairs of keys are intervals already, whatever their order."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall, stall)
    await bench.start()
    await bench.set(explicit=1)
    smallest, largest = key_limits(PARAMS.key_bits)
    flat = [*keys(np_rng, "uniform", 20, PARAMS.key_bits).tolist(), smallest, largest]
    for _ in range(2):
        bench.probes.send(frame(flat))
        tokens = await bench.bounds.frame()
        found = [(token["data"]["lo"], token["data"]["hi"]) for token in tokens]
        assert found == [(lo, hi + 1) for lo, hi in zip(flat[::2], flat[1::2], strict=True)]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_forgets_the_frame(dut):
    """After a reset in the middle of a frame, in the middle of a key's bands, the next is whole."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng)
    await bench.start()
    predicate = PREDICATES["bands"]
    for number in range(8):
        await bench.ask(predicate, Side.LEFT)
        bench.probes.send(frame(keys(np_rng, "uniform", 20, PARAMS.key_bits).tolist()))
        await ClockCycles(dut.clk, 3 + 5 * number)
        await bench.stop()
        bench = Bench(dut, rng)
        await bench.reset()
        probes = keys(np_rng, "uniform", 5, PARAMS.key_bits)
        bench.probes.send(frame(probes.tolist()))
        await bench.expect(probes, predicate, Side.LEFT)


@cocotb.test()
async def every_bin_was_hit(dut):
    """The functional coverage of this bench."""
    COVER.check()

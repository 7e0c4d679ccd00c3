"""What the benches of both mergers share."""

from cocotb.triggers import ClockCycles

from sim.design_bench import DesignBench
from sim.stimulus import merge_cases
from sim.stream_bfm import StreamSink, StreamSource, stalls

__all__ = ["MergeBench", "reset_within_frames"]


class MergeBench(DesignBench):
    """A merger of any width with a source at each input and a sink at its output.

    A bench has the `token` of its streams, makes a `frame` of tuples, and `expect`s a merged one.
    """

    token = None

    def __init__(self, dut, rng, stall_in=0.0, stall_out=0.0):
        super().__init__(dut)
        pause_in = stalls(rng, stall_in)
        self.main = StreamSource(dut, "main", shape=self.token, pause=pause_in)
        self.batch = StreamSource(dut, "batch", shape=self.token, pause=pause_in)
        self.merged = StreamSink(dut, "merged", shape=self.token, pause=stalls(rng, stall_out))

    def send(self, main, batch):
        self.main.send(self.frame(main))
        self.batch.send(self.frame(batch))


async def reset_within_frames(dut, make_bench, np_rng, long, most, key_bits=32):
    """Reset at later and later cycles of the frame `long`; each time the next frame is whole."""
    bench = make_bench()
    await bench.start()
    for number in range(8):
        bench.send(long, long)
        await ClockCycles(dut.clk, 5 + 7 * number)
        await bench.stop()
        bench = make_bench()
        await bench.reset()
        case = merge_cases(np_rng, "uniform", most, key_bits)
        bench.send(*case)
        await bench.expect(*case)

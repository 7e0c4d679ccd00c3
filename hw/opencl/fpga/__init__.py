"""The engines as single-work-item kernels joined by channels: PanJoin's FPGA design (section IV)
under SplitJoin's distribution and collection. One .cl file to a component:

    INSERT  distribute_tuples -> store (each core keeps its turns) -> staged batch
            split -> feed_main, feed_batch -> merge (each merger its piece) -> main array
                                                 `-> index_partitions -> index array
    PROBE   distribute_probes -> bound -> partition -> fetch -> probe -> punctuate -> collect
                                              `------ targets ----^
            (a boundary generator and a punctuator a core; partition, fetch and probe a lane)

Channels never form a circle, and where one kernel feeds two ways to a third, the order of its
words keeps any depth from deadlock. `python -m hw.opencl.fpga` prints the program for an offline
compiler (Intel: aoc; Xilinx: v++ with -DXILINX); bitstreams/ has what they made of it.
"""

from hw.opencl.fpga.source import RESULT, STAR, source

__all__ = ["RESULT", "STAR", "source"]

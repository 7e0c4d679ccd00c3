"""The distribution tree: carries each command word to every join core (SplitJoin, section 4.1)."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.plumbing import Buffer, Fork

__all__ = ["DistributionNode", "DistributionTree", "branches", "tree_depth"]


def branches(leaves, fan_out):
    """How many leaves each child of a node takes: as even as can be, at most `fan_out` children.

    No share is above ceil(leaves / fan_out), so a tree of tree_depth levels reaches all leaves.
    """
    children = min(fan_out, leaves)
    share, rest = divmod(leaves, children)
    return [share + (n < rest) for n in range(children)]


def tree_depth(leaves, fan_out):
    """Levels of nodes between the root and a leaf: ceil(log_fan_out(leaves)), at least 1."""
    depth, reach = 1, fan_out
    while reach < leaves:
        depth, reach = depth + 1, reach * fan_out
    return depth


class DistributionNode(wiring.Component):
    """Every token of ``i`` goes once to each of the ``count`` children ``o``.

    Latency 1 cycle, one token a cycle. A child that stalls holds up the others only when the
    node's two places are full.
    """

    def __init__(self, shape, count):
        super().__init__(
            {"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)).array(count)}
        )
        self.buffer = Buffer(shape)
        self.fork = Fork(shape, count)

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = self.buffer
        m.submodules.fork = self.fork
        wiring.connect(m, wiring.flipped(self.i), self.buffer.i)
        wiring.connect(m, self.buffer.o, self.fork.i)
        for inner, outer in zip(self.fork.o, self.o, strict=True):
            wiring.connect(m, inner, wiring.flipped(outer))
        return m


class DistributionTree(wiring.Component):
    """Every token of ``i`` reaches each of the outputs ``o`` once, in order.

    leaves   number of outputs
    fan_out  children of a node (SplitJoin's branching factor b)

    Latency `depth` cycles to every leaf, one token a cycle while all leaves take them. No leaf is
    ever passed over and no token overtakes another (SplitJoin's single path from the top).
    """

    def __init__(self, shape, leaves, fan_out=2):
        if leaves < 1:
            raise ValueError(f"leaves must be from 1 on, not {leaves}")
        if fan_out < 2:
            raise ValueError(f"fan_out must be from 2 on, not {fan_out}")
        self.shape, self.fan_out = shape, fan_out
        self.depth = tree_depth(leaves, fan_out)
        super().__init__(
            {"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)).array(leaves)}
        )
        #: By name, a node and who feeds it: (name, child number), or None above the root.
        self.nodes = {}
        #: By leaf, the (name, child number) of the nodes from the root to it.
        self.paths = []
        self._grow("root", leaves, self.depth, ())

    def _grow(self, name, leaves, levels, path):
        """Add a subtree of so many levels at the end of `path`."""
        # A branch with one leaf is as long as the others: every leaf has the same latency.
        shares = branches(leaves, self.fan_out)
        node = DistributionNode(self.shape, len(shares))
        self.nodes[name] = node, path[-1] if path else None
        for n, share in enumerate(shares):
            here = (*path, (name, n))
            if levels == 1:
                self.paths.append(here)
            else:
                self._grow(f"{name}_{n}", share, levels - 1, here)

    def elaborate(self, platform):
        m = Module()
        for name, (node, feeder) in self.nodes.items():
            m.submodules[name] = node
            wiring.connect(m, self._output(feeder), node.i)
        for path, outer in zip(self.paths, self.o, strict=True):
            wiring.connect(m, self._output(path[-1]), wiring.flipped(outer))
        return m

    def _output(self, feeder):
        if feeder is None:
            return wiring.flipped(self.i)
        name, child = feeder
        return self.nodes[name][0].o[child]

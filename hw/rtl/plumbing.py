"""Streams that do not look at their payload: buffer, queues, fork, join, arbiter."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["Buffer", "Queue", "ShortQueue", "BlockQueue", "Fork", "Join", "Arbiter"]


class Buffer(wiring.Component):
    """Two places between ``i`` and ``o``, so that neither end sees the other's wires.

    Latency 1 cycle, one token a cycle. `valid` and `ready` both come from registers. `first` is
    what `o` offers, `second` waits behind it.
    """

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})
        width = Shape.cast(shape).width
        # Attributes, so that a proof can count what is inside.
        self.first = Signal(width, reset_less=True)
        self.first_valid = Signal()
        self.second = Signal(width, reset_less=True)
        self.second_valid = Signal()

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(~self.second_valid)
        m.d.comb += self.o.valid.eq(self.first_valid)
        m.d.comb += Value.cast(self.o.payload).eq(self.first)
        with m.If(~self.second_valid):
            m.d.sync += self.second.eq(Value.cast(self.i.payload))
        with m.If(~self.first_valid | self.o.ready):
            m.d.sync += self.second_valid.eq(0)
            m.d.sync += self.first_valid.eq(self.second_valid | self.i.valid)
            m.d.sync += self.first.eq(
                Mux(self.second_valid, self.second, Value.cast(self.i.payload))
            )
        with m.Elif(self.i.valid):
            m.d.sync += self.second_valid.eq(1)
        return m


class Queue(wiring.Component):
    """``depth`` tokens between ``i`` and ``o``; ``level`` counts those inside.

    Latency 2 cycles, one token a cycle. The memory has a synchronous read: block RAM when large.
    """

    def __init__(self, shape, depth):
        if depth < 2:
            raise ValueError(f"depth must be at least 2, not {depth}")
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        width = len(Value.cast(self.i.payload))
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=width, depth=self.depth)
        m.d.comb += [
            fifo.w_data.eq(Value.cast(self.i.payload)),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            Value.cast(self.o.payload).eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
            self.level.eq(fifo.level),
        ]
        return m


class ShortQueue(wiring.Component):
    """A queue for fast clocks: a memory of LUTs, and a register that ``o`` offers.

    Latency 2 cycles, one token a cycle; all of ``o`` and ``i.ready`` come from registers. At
    least ``depth`` - 1 tokens fit. ``level`` counts the tokens behind the one on offer, ``more``
    says that there is one.
    """

    def __init__(self, shape, depth=16):
        if depth < 4 or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two from 4 on, not {depth}")
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
                "more": Out(1),
            }
        )
        width = Shape.cast(shape).width
        # Attributes, so that a proof can look inside.
        self.storage = Memory(
            shape=unsigned(width), depth=depth, init=[], attrs={"ram_style": "distributed"}
        )
        self.write_at = Signal(range(depth))
        self.read_at = Signal(range(depth))
        self.room = Signal()
        self.offered = Signal(width, reset_less=True)

    def elaborate(self, platform):
        m = Module()
        m.submodules.storage = self.storage
        write_port = self.storage.write_port()
        read_port = self.storage.read_port(domain="comb")
        push = Signal()
        pop = Signal()
        m.d.comb += [
            self.i.ready.eq(self.room),
            push.eq(self.i.valid & self.room),
            pop.eq(self.more & (~self.o.valid | self.o.ready)),
            write_port.en.eq(push),
            write_port.addr.eq(self.write_at),
            write_port.data.eq(Value.cast(self.i.payload)),
            read_port.addr.eq(self.read_at),
        ]
        # Whatever the level is now, one push can come before this register is seen.
        m.d.sync += self.room.eq(self.level <= self.depth - 2)
        with m.If(push):
            m.d.sync += self.write_at.eq(self.write_at + 1)
        with m.If(pop):
            m.d.sync += self.read_at.eq(self.read_at + 1)
        with m.If(push & ~pop):
            m.d.sync += self.level.eq(self.level + 1)
            m.d.sync += self.more.eq(1)
        with m.Elif(pop & ~push):
            m.d.sync += self.level.eq(self.level - 1)
            m.d.sync += self.more.eq(self.level != 1)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(self.more)
            m.d.sync += self.offered.eq(read_port.data)
        m.d.comb += Value.cast(self.o.payload).eq(self.offered)
        return m


class BlockQueue(wiring.Component):
    """A ShortQueue in block RAM, for many wide tokens: LUTs only count them.

    Latency 3 cycles, one token a cycle; all of ``o`` and ``i.ready`` come from registers. At
    least ``depth`` - 1 tokens fit. ``level`` counts those behind the two that block RAM and ``o``
    hold, ``more`` says that there is one.
    """

    def __init__(self, shape, depth):
        if depth < 4 or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two from 4 on, not {depth}")
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
                "more": Out(1),
            }
        )
        width = Shape.cast(shape).width
        # No token is read before the cycle after that in which it was written.
        attrs = {"ram_style": "block", "no_rw_check": 1}
        # Attributes, so that a proof can look inside.
        self.storage = Memory(shape=unsigned(width), depth=depth, init=[], attrs=attrs)
        self.write_at = Signal(range(depth))
        self.read_at = Signal(range(depth))
        self.room = Signal()
        self.fetched = Signal()
        self.word = Signal(width)  # what was fetched
        self.offered = Signal(width, reset_less=True)

    def elaborate(self, platform):
        m = Module()
        m.submodules.storage = self.storage
        write_port = self.storage.write_port()
        read_port = self.storage.read_port()
        push = Signal()
        move = Signal()
        pop = Signal()
        m.d.comb += [
            self.i.ready.eq(self.room),
            push.eq(self.i.valid & self.room),
            move.eq(~self.o.valid | self.o.ready),
            pop.eq(self.more & (~self.fetched | move)),
            write_port.en.eq(push),
            write_port.addr.eq(self.write_at),
            write_port.data.eq(Value.cast(self.i.payload)),
            read_port.en.eq(pop),
            read_port.addr.eq(self.read_at),
            self.word.eq(read_port.data),
        ]
        # Whatever the level is now, one push can come before this register is seen.
        m.d.sync += self.room.eq(self.level <= self.depth - 2)
        with m.If(push):
            m.d.sync += self.write_at.eq(self.write_at + 1)
        with m.If(pop):
            m.d.sync += self.read_at.eq(self.read_at + 1)
        with m.If(push & ~pop):
            m.d.sync += self.level.eq(self.level + 1)
            m.d.sync += self.more.eq(1)
        with m.Elif(pop & ~push):
            m.d.sync += self.level.eq(self.level - 1)
            m.d.sync += self.more.eq(self.level != 1)
        with m.If(~self.fetched | move):
            m.d.sync += self.fetched.eq(self.more)
        with m.If(move):
            m.d.sync += self.o.valid.eq(self.fetched)
            m.d.sync += self.offered.eq(self.word)
        m.d.comb += Value.cast(self.o.payload).eq(self.offered)
        return m


class Fork(wiring.Component):
    """Every token of ``i`` goes once to each of the ``count`` outputs ``o``, at its own time.

    Latency 0, one token a cycle when all outputs take it at once.
    """

    def __init__(self, shape, count):
        self.count = count
        super().__init__(
            {"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)).array(count)}
        )
        self.served = Signal(count)  # outputs that already have the token that `i` offers

    def elaborate(self, platform):
        m = Module()
        served = self.served
        taken = Signal(self.count)
        for n, o in enumerate(self.o):
            m.d.comb += o.payload.eq(self.i.payload)
            m.d.comb += o.valid.eq(self.i.valid & ~served[n])
            m.d.comb += taken[n].eq(served[n] | (o.valid & o.ready))
        m.d.comb += self.i.ready.eq(taken.all())
        m.d.sync += served.eq(Mux(taken.all(), 0, taken))
        return m


class Join(wiring.Component):
    """One token of each of the inputs ``i_<name>`` makes one token of ``o`` with those fields.

    Latency 0, one token a cycle.
    """

    def __init__(self, **shapes):
        self.names = tuple(shapes)
        members = {f"i_{name}": In(stream.Signature(shape)) for name, shape in shapes.items()}
        members["o"] = Out(stream.Signature(data.StructLayout(shapes)))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        inputs = {name: getattr(self, f"i_{name}") for name in self.names}
        m.d.comb += self.o.valid.eq(Cat(i.valid for i in inputs.values()).all())
        for name, i in inputs.items():
            m.d.comb += Value.cast(self.o.payload[name]).eq(Value.cast(i.payload))
            m.d.comb += i.ready.eq(self.o.valid & self.o.ready)
        return m


class Arbiter(wiring.Component):
    """Fair merge of ``count`` streams ``i`` into ``o``; a token brings the number of its input.

    Latency 1 cycle, one token a cycle. Payload of `o`: `payload`, `source`.
    """

    def __init__(self, shape, count):
        self.count = count
        chosen = data.StructLayout({"payload": shape, "source": range(count)})
        super().__init__(
            {"i": In(stream.Signature(shape)).array(count), "o": Out(stream.Signature(chosen))}
        )
        self.last = Signal(range(count))  # the input served last, so the last to be served again

    def elaborate(self, platform):
        m = Module()
        last = self.last
        choice = Signal(range(self.count))
        waiting = Cat(i.valid for i in self.i)
        with m.Switch(last):
            for served in range(self.count):
                with m.Case(served):
                    # Later assignments win: the input after the one served last has them all.
                    for step in reversed(range(1, self.count + 1)):
                        number = (served + step) % self.count
                        with m.If(self.i[number].valid):
                            m.d.comb += choice.eq(number)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(waiting.any())
            with m.If(waiting.any()):
                m.d.sync += last.eq(choice)
            with m.Switch(choice):
                for number, i in enumerate(self.i):
                    with m.Case(number):
                        m.d.comb += i.ready.eq(i.valid)
                        m.d.sync += Value.cast(self.o.payload.payload).eq(Value.cast(i.payload))
                        m.d.sync += self.o.payload.source.eq(number)
        return m

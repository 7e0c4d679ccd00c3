"""The combiner at the collection tree's root: it tags every star with its stream."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.collection_tree import MOST_STARS, punctuated
from hw.rtl.engine_words import result_layout
from hw.rtl.plumbing import ShortQueue
from hw.spec import JoinParams

__all__ = ["Combiner", "answer_layout"]


def answer_layout(params: JoinParams):
    """What leaves an engine: `stars` of the stream `side`, then a result where `present`.

    last  the stars end a command's answer
    """
    return data.StructLayout(
        {
            "data": result_layout(params), "present": 1, "stars": range(MOST_STARS + 1),
            "side": 1, "last": 1,
        }
    )


class Combiner(wiring.Component):
    """Makes ``answers`` of the root's punctuated ``results`` (SplitJoin, section 5.1).

    sides  the stream of every command, in the order of the commands

    A command's last star is the first behind its replies. Stars of two commands that came as one
    run are told apart again. One token a cycle, but for such a run: two.
    """

    def __init__(self, params: JoinParams, commands=16):
        self.params = params
        super().__init__(
            {
                "sides": In(stream.Signature(1)),
                "results": In(stream.Signature(punctuated(result_layout(params)))),
                "answers": Out(stream.Signature(answer_layout(params))),
            }
        )
        self.queue = ShortQueue(1, commands)
        self.closing = Signal()  # replies have come: the next star is the command's last
        self.split = Signal()  # the last star of the token on offer has left, the rest is to go

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        wiring.connect(m, wiring.flipped(self.sides), queue.i)
        came, out = self.results.payload, self.answers.payload
        room = ~self.answers.valid | self.answers.ready
        last = Signal()  # this step sends a command's last star alone
        more = Signal()  # and something of the token is left for another step
        m.d.comb += last.eq(self.closing & ~self.split & (came.stars != 0))
        m.d.comb += more.eq(last & ((came.stars != 1) | came.present))
        # Only who knows the side can tag a star.
        step = room & self.results.valid & queue.o.valid
        m.d.comb += self.results.ready.eq(step & ~more)
        m.d.comb += queue.o.ready.eq(step & last)
        with m.If(room):
            m.d.sync += self.answers.valid.eq(step)
        with m.If(step):
            m.d.sync += [out.data.eq(came.data), out.side.eq(queue.o.payload), out.last.eq(last)]
            m.d.sync += out.present.eq(came.present & ~last)
            m.d.sync += out.stars.eq(Mux(last, 1, came.stars - self.split))
            m.d.sync += self.split.eq(more)
            with m.If(last):
                m.d.sync += self.closing.eq(0)
            with m.Elif(came.present & came.data.reply):
                m.d.sync += self.closing.eq(1)
        return m

"""What flows into and out of an engine of several join cores: command words and results.

A command is its head, cut into words, and for INSERT and PROBE its payload: words with tuples or
keys, then one `end` word without.
"""

from amaranth.lib import data

from hw.rtl.join_core import command_layout
from hw.rtl.layouts import record_layout, tuple_layout, wide_token
from hw.rtl.slot_table import WIRE_BITS
from hw.spec import JoinParams

__all__ = ["head_layout", "word_token", "head_words", "result_layout", "context_layout"]

#: Results between two stars that a head can ask for.
STAR_BITS = 32


def head_layout(params: JoinParams):
    """A command and how its results are punctuated (SplitJoin's adjustable precision).

    star_every  records between two stars, 0 for none: with one record a band, the bands of a
                predicate times k are a star every k tuples, and the bands alone strict outer order
    ordered     between stars, results come core by core; with a star after every record that is
                strict inner order
    scan        for nested-loop cores: comparisons for each probe, the same in every core
    """
    return data.StructLayout(
        {
            "command": command_layout(params), "star_every": STAR_BITS, "ordered": 1,
            "scan": WIRE_BITS,
        }
    )


def word_token(params: JoinParams):
    """One word of a command: up to `lanes` tuples, as many keys, or a piece of the head."""
    return wide_token(tuple_layout(params), params.lanes)


def head_words(params: JoinParams):
    """Words of a head; its first bits come first."""
    return -(-head_layout(params).size // (tuple_layout(params).size * params.lanes))


def context_layout():
    """What a core's punctuator has to know of a command before its results come."""
    return data.StructLayout({"probe": 1, "side": 1, "star_every": STAR_BITS, "ordered": 1})


def result_layout(params: JoinParams):
    """A record that is not empty, or a core's reply.

    core    who found it
    reply   `number` is the subwindow's, `record` has the rows and status with opcode << 8
    number  of the record among all of its probe command, empty ones counted
    """
    return data.StructLayout(
        {
            "record": record_layout(), "number": WIRE_BITS, "reply": 1, "side": 1,
            "core": range(max(2, params.cores)),
        }
    )

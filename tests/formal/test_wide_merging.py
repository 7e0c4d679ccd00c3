"""A wide merger loses, doubles and invents no tuple, in any frame at any speed: by induction.

Bounded: the first frame leaves in order and to its end, whatever it is that fits into the first
cycles. Induction would need an invariant that ties every place to the words still to come.
"""

import pytest
from amaranth.hdl import *
from amaranth.lib import data

from hw.rtl.layouts import order_of
from hw.rtl.wide_merger import WideMerger
from tests.formal.proofs import ProofFailed, check, prove
from tests.formal.test_probing_rules import counted, equal, in_queue, moves
from tests.formal.test_stream_rules import Harness

pytestmark = pytest.mark.formal

TUPLE = data.StructLayout({"key": signed(2), "rid": 1})
LANES = 2
#: With any stalls, enough for the shortest frames; at full speed, for frames of several words.
CYCLES = {"any speed": 15, "full speed": 17}
#: In this time a merger that is fed and drained sends something.
REST = 14


class ShortMerger(WideMerger):
    """Banks as short as they can be: the control is the same, the proof is smaller."""

    BANK_DEPTH = 8

    def __init__(self):
        super().__init__(TUPLE, LANES, out_depth=16)
        # A proof looks at every place of the banks' queues through ports of its own.
        for side in self.sides:
            for bank in side.banks:
                bank.looked_at = [bank.queue.storage.read_port(domain="comb") for _ in range(8)]


def harness_of(dut, claims):
    return Harness(dut, [dut.main, dut.batch], [dut.merged], claims, police=False)


def tuples_queued(m, rules, dut, side, lane):
    """How many tuples are in the queue of a bank: they are first, and behind them only pads."""
    bank, queue = side.banks[lane], side.banks[lane].queue
    in_queue(m, rules, queue)
    count = Signal(range(queue.depth + 2), name=f"{side.name}_{lane}_queued")
    leaves = queue.o.valid & queue.o.ready & ~queue.o.payload.pad
    m.d.sync += count.eq(Mux(dut.over, 0, count + side.present[lane] - leaves))
    m.d.comb += Assert(~queue.o.valid | (queue.o.payload.pad == (count == 0)))
    for place, port in enumerate(bank.looked_at):
        m.d.comb += port.addr.eq(place)
        at = (place - queue.read_at)[: (queue.depth - 1).bit_length()]
        pad = queue.o.payload.shape()(port.data).pad
        m.d.comb += Assert((at >= queue.level) | (pad == (at + queue.o.valid >= count)))
    # Pads are dealt after the end alone, and tuples only where there is room.
    m.d.comb += Assert((count == queue.level + queue.o.valid) | side.ended)
    m.d.comb += Assert(count <= queue.level + queue.o.valid)
    m.d.comb += Assert(~side.present[lane] | (queue.room & ~side.ended))
    m.d.comb += Assert(~side.room | (queue.level <= dut.BANK_DEPTH - 4))
    return count


def tuples_banked(m, rules, dut, side):
    """How many tuples the banks of a side have, heads and queues."""
    count = 0
    for lane, bank in enumerate(side.banks):
        queued = tuples_queued(m, rules, dut, side, lane)
        # Main's first heads are nothing, and the first to be popped.
        real = dut.primed if side is dut.sides[0] else bank.head_valid
        count = count + queued + (real & ~bank.head.pad)
        pads = real & bank.head.pad
        m.d.comb += Assert(~pads | ((queued == 0) & side.ended))
        m.d.comb += Assert(~dut.over | (pads & ~dut.go))
        m.d.comb += Assert(~dut.primed | bank.head_valid)
        m.d.comb += Assert(~dut.go | (bank.head_valid & bank.queue.o.valid))
    return count


def lane_rules(m, dut):
    """The smaller of two heads goes, and a pad only where both are pads."""
    m.d.comb += Assert(dut.primed | dut.takes.all())
    for lane, winner in enumerate(dut.winners):
        ours = dut.sides[0].banks[lane].head
        theirs = dut.sides[1].banks[LANES - 1 - lane].head
        main_first = order_of(ours.data.key, ours.pad) <= order_of(theirs.data.key, theirs.pad)
        m.d.comb += Assert(~dut.primed | (dut.takes[lane] == main_first))
        pads = dut.primed & ours.pad & theirs.pad
        m.d.comb += Assert(~dut.chosen | ~winner.pad | pads)
        m.d.comb += Assert(~dut.chosen | dut.primed)
        m.d.comb += Assert(~dut.chosen | ~dut.over | winner.pad)


def conservation(dut):
    def claims(m, rules):
        for bank in dut.sides[0].banks:
            m.d.comb += Assert(bank.head_valid)
        came, present, banked = 0, 0, 0
        for side in dut.sides:
            word = side.tokens.payload
            m.d.comb += Assume((word.count <= LANES) & (~word.end | (word.count == 0)))
            came = came + Mux(moves(side.tokens), word.count, 0)
            present = present + sum(side.present)
            banked = banked + tuples_banked(m, rules, dut, side)
        lane_rules(m, dut)
        # From the inputs to the banks, to the winners, to the queue of the output.
        came = counted(m, "came", came)
        dealt = counted(m, "dealt", present)
        equal(m, came, dealt + present)
        winning = sum(dut.chosen & ~winner.pad for winner in dut.winners)
        won = counted(m, "won", winning)
        equal(m, dealt, won + winning + banked)
        sorting = sum(valid & ~lane.pad for valid, lanes in dut.sorting for lane in lanes)
        went = counted(m, "went", Mux(dut.out.i.valid, dut.out.i.payload.count, 0))
        equal(m, won, went + sorting)
        # There is always room: this queue loses and doubles nothing, as another proof shows.
        in_queue(m, rules, dut.out)
        under_way = dut.go + dut.chosen + sum(valid for valid, _ in dut.sorting)
        m.d.comb += Assert(dut.out.level + under_way <= dut.out_depth - 4)
        m.d.comb += Assert(dut.stalled | (dut.out.level <= dut.out_depth - 9))
        m.d.comb += Assert(~dut.out.i.valid | dut.out.room)

    return claims


def test_a_wide_merger_loses_and_doubles_no_tuple(tmp_path):
    dut = ShortMerger()
    prove(harness_of(dut, conservation(dut)), tmp_path, steps=3)


def one_frame(m, source, name):
    """Whatever comes is one frame: ascending keys, full words but the last. Whether it is over."""
    word = source.payload
    over = Signal(name=f"{name}_over")
    short = Signal(name=f"{name}_short")
    highest = Signal(signed(2), name=f"{name}_highest", init=-2)
    first, second = word.data[0].key, word.data[1].key
    m.d.comb += Assume(word.count <= LANES)
    m.d.comb += Assume(word.end == (word.count == 0))
    with m.If(source.valid):
        m.d.comb += Assume(~over)
        m.d.comb += Assume(word.end | (~short & (first >= highest)))
        m.d.comb += Assume((word.count != 2) | (second >= first))
    with m.If(moves(source)):
        m.d.sync += [over.eq(word.end), short.eq(word.count == 1)]
        m.d.sync += highest.eq(Mux(word.count == 2, second, first))
    return over


def one_merged_frame(dut, speed, *, endless=0):
    """One frame comes and leaves; that it is `endless` is a claim that must be refuted."""

    def claims(m, rules):
        sources = dut.main, dut.batch
        overs = [one_frame(m, source, f"i{n}") for n, source in enumerate(sources)]
        word, leaves = dut.merged.payload, moves(dut.merged)
        first, second = word.data[0].key, word.data[1].key
        highest = Signal(signed(2), init=-2)
        done = Signal()
        rest = Signal(range(REST + 2))
        with m.If(leaves & ~word.end):
            m.d.comb += Assert((first >= highest) & ((word.count != 2) | (second >= first)))
            m.d.sync += highest.eq(Mux(word.count == 2, second, first))
        with m.If(leaves & word.end):
            m.d.comb += Assert(~C(endless))
            m.d.sync += done.eq(1)
        m.d.comb += Assert(~dut.merged.valid | ~done)
        fed = Cat(source.valid | over for source, over in zip(sources, overs, strict=True)).all()
        if speed == "full speed":
            m.d.comb += Assume(fed & dut.merged.ready)
        resting = fed & ~done & ~dut.merged.valid
        m.d.sync += rest.eq(Mux(resting, rest + 1, 0))
        m.d.comb += Assert(rest <= REST)

    return claims


@pytest.mark.parametrize("speed", CYCLES)
def test_a_frame_is_merged_in_order_and_to_its_end(speed, tmp_path):
    dut = ShortMerger()
    check(harness_of(dut, one_merged_frame(dut, speed)), tmp_path, CYCLES[speed])


@pytest.mark.parametrize("speed", CYCLES)
def test_frames_end_within_the_cycles_that_are_checked(speed, tmp_path):
    """The same claim, made false: so the one above speaks of whole frames."""
    dut = ShortMerger()
    with pytest.raises(ProofFailed):
        check(harness_of(dut, one_merged_frame(dut, speed, endless=1)), tmp_path, CYCLES[speed])

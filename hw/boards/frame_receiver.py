"""The receiving half of a board's link: frames out of marked bytes, payload kept in a ring."""

from amaranth.hdl import *
from amaranth.lib import crc, stream, wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.boards.framing import Unstuffer
from hw.rtl.layouts import layout_of
from hw.spec.link import FRAME, MOST_PAYLOAD, WINDOW

__all__ = ["FrameReceiver", "checksum", "RING"]

#: Bytes of a ring: the payload of a whole window.
RING = WINDOW * MOST_PAYLOAD
_CRC_BYTES = 4


def checksum() -> crc.Processor:
    """The link's CRC-32, a byte a cycle."""
    return CRC32_ISO_HDLC(data_width=8).create()


class FrameReceiver(wiring.Component):
    """Bytes ``cable`` -> frames; their ``payload`` comes out once they are accepted.

    head    of the frame that has just ended, from two cycles before `ended` until the one after
    ended   for one cycle: a frame has ended
    sound   while `ended`: it is whole, and its payload fits
    accept  while `ended`: its payload is to be kept
    credit  frames of full length that there is room for
    clear   forget all payload

    A byte a cycle; behind the flag that ends a frame it takes none for three cycles, in which the
    frame is judged step by step.
    """

    def __init__(self):
        super().__init__(
            {
                "cable": In(stream.Signature(8)),
                "payload": Out(stream.Signature(8)),
                "head": Out(layout_of(FRAME)),
                "ended": Out(1),
                "sound": Out(1),
                "accept": In(1),
                "credit": Out(range(WINDOW + 1), init=WINDOW),
                "clear": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unstuffer = unstuffer = Unstuffer()
        wiring.connect(m, wiring.flipped(self.cable), unstuffer.i)
        m.submodules.crc = check = checksum()
        came = unstuffer.o.payload
        weighed, settles = Signal(), Signal()  # the cycles before and behind `ended`
        comes, byte_comes = Signal(), Signal()
        m.d.comb += unstuffer.o.ready.eq(~weighed & ~self.ended & ~settles)
        m.d.comb += comes.eq(unstuffer.o.valid & unstuffer.o.ready)
        m.d.comb += byte_comes.eq(comes & ~came.flag)
        m.d.comb += [check.data.eq(came.byte), check.valid.eq(byte_comes)]
        head_bytes = FRAME.itemsize
        longest = head_bytes + MOST_PAYLOAD + _CRC_BYTES
        count = Signal(range(longest + 2))
        head = Value.cast(self.head)
        delay = Signal(8 * _CRC_BYTES)  # the checksum is never stored
        with m.If(byte_comes & (count <= longest)):
            m.d.sync += count.eq(count + 1)
            m.d.sync += delay.eq(Cat(delay, came.byte)[8:])
            with m.If(count < head_bytes):
                m.d.sync += head.eq(Cat(head, came.byte)[8:])
        m.d.comb += check.start.eq(comes & came.flag)
        with m.If(check.start):
            m.d.sync += count.eq(0)
        fitted = self._keep(m, byte_comes, count, delay[:8], settles)
        matches, whole, fits = Signal(), Signal(), Signal()
        m.d.sync += [
            weighed.eq(check.start & (count != 0)), self.ended.eq(weighed), settles.eq(self.ended),
            matches.eq(check.match_detected & ~came.damaged), fits.eq(fitted),
            whole.eq((count <= longest) & (count == self.head.length + head_bytes + _CRC_BYTES)),
            self.sound.eq(matches & fits & whole),
        ]
        return m

    def _keep(self, m, byte_comes, count, byte, settles):
        """Write payload behind what is kept; it counts once it is accepted. Whether it fits."""
        m.submodules.ring = ring = Memory(shape=8, depth=RING, init=[])
        write, read = ring.write_port(), ring.read_port()
        begin = Signal(range(RING))  # where the next frame's payload goes
        length = Signal(range(MOST_PAYLOAD + 2))  # of it that has come
        used = Signal(range(RING + 1))  # accepted and not yet given out
        accepted = Signal()
        m.d.sync += accepted.eq(self.ended & self.accept & ~self.clear)
        missed = Signal()  # a byte of this frame found no room; that some came later is no help
        stores, room = Signal(), Signal()
        m.d.comb += stores.eq(
            byte_comes & (count >= FRAME.itemsize + _CRC_BYTES) & (length <= MOST_PAYLOAD)
        )
        m.d.comb += [write.addr.eq(begin + length), write.data.eq(byte)]
        m.d.comb += room.eq(used + length < RING)
        m.d.comb += write.en.eq(stores & room)
        with m.If(stores):
            m.d.sync += length.eq(length + 1)
            m.d.sync += missed.eq(missed | ~room)
        with m.If(settles):
            m.d.sync += [length.eq(0), missed.eq(0)]
        fetch = self._give(m, read, begin, used, accepted)
        with m.If(self.clear):
            m.d.sync += used.eq(0)
        with m.Elif(accepted):
            m.d.sync += begin.eq(begin + length)
            m.d.sync += used.eq(used + length)
        with m.Elif(fetch):
            m.d.sync += used.eq(used - 1)
        m.d.sync += self.credit.eq((RING - used) >> (MOST_PAYLOAD - 1).bit_length())
        return ~missed

    def _give(self, m, read, begin, used, accepted):
        """Offer accepted bytes in order; whether one is fetched from the ring this cycle."""
        read_at = Signal.like(begin)
        fetched = Signal()  # the read port shows a byte that is not offered yet
        fetch = Signal()
        moves = Signal()
        m.d.comb += moves.eq(fetched & (~self.payload.valid | self.payload.ready))
        # While a frame is added none is taken away: `used` is one step from a register, not two.
        m.d.comb += fetch.eq((used != 0) & (~fetched | moves) & ~accepted)
        m.d.comb += read.addr.eq(read_at)
        m.d.comb += read.en.eq(fetch)
        with m.If(fetch):
            m.d.sync += read_at.eq(read_at + 1)
        with m.If(~self.payload.valid | self.payload.ready):
            m.d.sync += self.payload.valid.eq(fetched)
            m.d.sync += self.payload.payload.eq(read.data)
        m.d.sync += fetched.eq(fetch | (fetched & ~moves))
        with m.If(self.clear):
            m.d.sync += [fetched.eq(0), self.payload.valid.eq(0), read_at.eq(begin)]
        return fetch

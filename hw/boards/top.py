"""What every board has inside: serial line, link, engine. It is what is simulated, too."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.boards.link import BoardLink
from hw.boards.uart import UartReceiver, UartTransmitter
from hw.rtl.engine import Engine
from hw.rtl.engine_port import EnginePort
from hw.spec import JoinParams

__all__ = ["BoardTop", "LEDS", "greeting"]

#: What the lights mean, the first one first.
LEDS = ("beat", "session", "receives", "sends", "works")
#: Cycles that a light stays on after what it shows, as a power of two.
GLOW_BITS = 22
#: Cycles that an engine is given to forget a session: far fewer than a first command needs to come.
RESTART_CYCLES = 128


def greeting(digest: str) -> bytes:
    """What a board says of itself: which bitstream it runs."""
    return f"watersmeet {digest}".encode()


class BoardTop(wiring.Component):
    """An engine of `params.cores` cores behind the serial line ``rx``, ``tx``.

    core     makes one join core, as for hw.rtl.engine.Engine
    divisor  clock cycles of a bit on the line
    digest   names the bitstream

    leds     see LEDS: the clock runs; a session is open; bytes come; bytes go; a command is at work
    restart  the board's button: whatever was under way is forgotten, the session too
    """

    def __init__(self, params: JoinParams, core, *, divisor, digest):
        self.params = params
        self.engine = Engine(params, core)
        self.link = BoardLink(greeting(digest))
        self.receiver = UartReceiver(divisor)
        self.transmitter = UartTransmitter(divisor)
        super().__init__(
            {"rx": In(1, init=1), "tx": Out(1, init=1), "leds": Out(len(LEDS)), "restart": In(1)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.port = port = EnginePort(self.params, self.engine)
        for name in ("link", "receiver", "transmitter"):
            m.submodules[name] = ResetInserter(self.restart)(getattr(self, name))
        m.d.comb += [self.receiver.rx.eq(self.rx), self.tx.eq(self.transmitter.tx)]
        wiring.connect(m, self.receiver.bytes, self.link.receive)
        wiring.connect(m, self.link.transmit, self.transmitter.bytes)
        self._connect_port(m, port)
        self._light(m)
        return m

    def _connect_port(self, m, port):
        """Link and engine, but while a session begins: it finds an engine that holds nothing."""
        left = Signal(range(RESTART_CYCLES))
        resting = Signal()  # nothing passes
        with m.If(self.restart | self.link.restart):
            m.d.sync += left.eq(RESTART_CYCLES - 1)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.comb += resting.eq(left != 0)
        # The second half is for what the engine hears late.
        m.d.sync += port.restart.eq(left > RESTART_CYCLES // 2)
        for source, target in (
            (self.link.commands, port.commands), (port.answers, self.link.answers)
        ):
            m.d.comb += target.payload.eq(source.payload)
            m.d.comb += target.valid.eq(source.valid & ~resting)
            m.d.comb += source.ready.eq(target.ready & ~resting)

    def _light(self, m):
        beat = Signal(GLOW_BITS + 3)
        m.d.sync += beat.eq(beat + 1)
        working = Signal()  # a command began and its answer has not ended
        with m.If(self.link.commands.valid & self.link.commands.ready):
            m.d.sync += working.eq(1)
        answers = self.link.answers
        with m.If(answers.valid & answers.ready & answers.payload.flush):
            m.d.sync += working.eq(0)
        shown = {
            "beat": beat[-1],
            "session": self.link.alive,
            "receives": self._glow(m, "receives", self.receiver.bytes.valid),
            "sends": self._glow(m, "sends", self.transmitter.bytes.valid),
            "works": self._glow(m, "works", working),
        }
        m.d.comb += self.leds.eq(Cat(shown[name] for name in LEDS))

    def _glow(self, m, name, event):
        """On from the event until long enough after it for an eye."""
        left = Signal(GLOW_BITS, name=f"glow_{name}")
        with m.If(event):
            m.d.sync += left.eq(-1)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return left != 0

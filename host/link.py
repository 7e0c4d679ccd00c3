"""The host's end of the link: bytes in order over a cable that damages, loses and repeats."""

import time
from collections import deque
from typing import Protocol

from host.errors import LinkError
from hw.spec.link import MOST_PAYLOAD, WINDOW, Deframer, Kind, LinkFrame, frame_bytes

__all__ = ["Link", "LinkEnd", "Transport"]

_NUMBERS = 256
#: Frames of another session in a row after which the board is believed to have left ours. Fewer may
#: be old ones that the cable repeated.
_STRANGERS = WINDOW


class Transport(Protocol):
    """A byte stream in both directions: a serial port now, USB or Ethernet by the same calls."""

    name: str

    def read(self, timeout_s: float) -> bytes:
        """Bytes that came, at least one, or none after the timeout; LinkError when it is gone."""

    def write(self, data: bytes) -> None:
        """Send all of these bytes; LinkError when it is gone."""

    def close(self) -> None:
        """Give the port free."""


class LinkEnd:
    """The protocol alone, without a clock or a cable: bytes in, bytes out.

    `send` takes payload, `received` holds what the board sent, in order, each byte once.
    """

    def __init__(self, session: int) -> None:
        self.session = session
        self.received = bytearray()
        self.welcome: bytes | None = None
        self.retransmitted = 0
        self._deframer = Deframer()
        self._waiting: deque[bytes] = deque()  # payloads of frames that were never sent
        self._unacknowledged: deque[bytes] = deque()  # sent, the oldest has number _base
        self._base = 0
        self._sent = 0  # how many of the unacknowledged are on the way
        self._reached = 0  # how many of them were ever sent
        self._credit = 0
        self._expected = 0
        self._answer: Kind | None = None  # what the board is owed
        self._asked_again = False  # one AGAIN for one gap
        self._strangers = 0  # frames of another session since the last one of ours

    @property
    def damaged(self) -> int:
        """Frames that came damaged."""
        return self._deframer.damaged

    @property
    def idle(self) -> bool:
        """Whether everything that was sent has been acknowledged."""
        return not self._waiting and not self._unacknowledged

    @property
    def unacknowledged(self) -> int:
        """Bytes of payload that the board has not said to have."""
        return sum(map(len, self._waiting)) + sum(map(len, self._unacknowledged))

    def send(self, payload: bytes) -> None:
        """Queue bytes for the board."""
        self._waiting.extend(
            payload[at : at + MOST_PAYLOAD] for at in range(0, len(payload), MOST_PAYLOAD)
        )

    def feed(self, data: bytes) -> bool:
        """Take bytes from the cable; whether the board made progress with them."""
        progress = False
        for frame in self._deframer.feed(data):
            if frame is None:
                self._owe(lost=True)
            elif frame.kind is Kind.WELCOME and frame.session == self.session:
                progress |= self.welcome is None
                self._take_acknowledgement(frame)
                self.welcome = frame.payload
            elif self.welcome is not None:
                progress |= self._take(frame)
        return progress

    def _take(self, frame: LinkFrame) -> bool:
        if frame.session != self.session:
            self._hear_stranger()
            return False
        self._strangers = 0
        progress = self._take_acknowledgement(frame)
        if frame.kind is Kind.AGAIN:
            self._repeat()
            self._owe()
        if frame.kind is Kind.DATA:
            if frame.seq == self._expected:
                self.received += frame.payload
                self._expected = (self._expected + 1) % _NUMBERS
                self._asked_again = False
                self._owe()
                return True
            # Of what came before there is nothing to ask for again.
            self._owe(lost=(frame.seq - self._expected) % _NUMBERS <= WINDOW)
        return progress

    def _hear_stranger(self) -> None:
        """Ask what the board's session is: it says so in its answer; LinkError if it insists."""
        self._strangers += 1
        if self._strangers > _STRANGERS:
            raise LinkError(
                "the board was reset in the middle of a join: its windows are lost, run it again"
            )
        self._answer, self._asked_again = Kind.AGAIN, True

    def _owe(self, lost: bool = False) -> None:
        if lost and not self._asked_again:
            self._answer, self._asked_again = Kind.AGAIN, True
        elif self._answer is None:
            self._answer = Kind.ACK

    def _take_acknowledgement(self, frame: LinkFrame) -> bool:
        done = (frame.ack - self._base) % _NUMBERS
        if done > self._reached:
            return False  # older than what is known already
        self._credit = frame.credit
        for _ in range(done):
            self._unacknowledged.popleft()
        self._base = frame.ack
        self._sent = max(0, self._sent - done)
        self._reached -= done
        return done > 0

    def _repeat(self) -> None:
        """Send again from the oldest that is not acknowledged."""
        self.retransmitted += self._sent
        self._sent = 0

    def timeout(self) -> bytes:
        """Nothing came for a while: what to send so that something will."""
        if self.welcome is None:
            return frame_bytes(LinkFrame(kind=Kind.HELLO, session=self.session))
        self._repeat()
        # The board may have lost a credit or an acknowledgement, we may have lost a frame.
        self._asked_again, self._answer = True, Kind.AGAIN
        return self.transmit()

    def transmit(self) -> bytes:
        """What may be sent now: new frames within window and credit, or what is owed."""
        if self.welcome is None:
            return b""
        out = bytearray()
        while len(self._unacknowledged) < WINDOW and self._waiting:
            self._unacknowledged.append(self._waiting.popleft())
        while self._sent < min(len(self._unacknowledged), self._credit):
            seq = (self._base + self._sent) % _NUMBERS
            out += self._frame(Kind.DATA, seq, self._unacknowledged[self._sent])
            self._sent += 1
            self._reached = max(self._reached, self._sent)
            if self._answer is Kind.ACK:
                self._answer = None
        if self._answer is not None:
            out += self._frame(self._answer)
            self._answer = None
        return bytes(out)

    def _frame(self, kind: Kind, seq: int = 0, payload: bytes = b"") -> bytes:
        return frame_bytes(
            LinkFrame(
                kind=kind, session=self.session, seq=seq, ack=self._expected, credit=WINDOW,
                payload=payload,
            )
        )


class Link:
    """A session with a board over a transport: `write` and `read` payload, nothing lost.

    patience_s  how long the board may be silent before it is given up
    retry_s     how long before something is sent again
    """

    def __init__(
        self, transport: Transport, session: int, *, patience_s: float = 20.0, retry_s: float = 0.2
    ) -> None:
        self.transport = transport
        self.end = LinkEnd(session)
        self._patience_s, self._retry_s = patience_s, retry_s
        while self.end.welcome is None:
            self._turn("begin a session")

    @property
    def welcome(self) -> bytes:
        """How the board described itself."""
        assert self.end.welcome is not None
        return self.end.welcome

    def write(self, payload: bytes) -> None:
        """Send payload; what comes meanwhile is kept for `read`."""
        self.end.send(payload)
        while not self.end.idle:
            self._turn("take a command")

    def read(self, count: int) -> bytes:
        """The next `count` bytes of the board."""
        while len(self.end.received) < count:
            self._turn("answer")
        taken = bytes(self.end.received[:count])
        del self.end.received[:count]
        return taken

    def _turn(self, what: str) -> None:
        """Send what can be sent, and wait until the board has made progress."""
        heard = time.monotonic()
        retry_s = self._retry_s
        if self.end.welcome is None:
            self.transport.write(self.end.timeout())
        while True:
            out = self.end.transmit()
            if out:
                self.transport.write(out)
            data = self.transport.read(retry_s)
            if self.end.feed(data):
                self._acknowledge()
                return
            now = time.monotonic()
            if data:
                heard = now
            if now - heard > self._patience_s:
                raise LinkError(
                    f"the board at {self.transport.name} did not {what} for "
                    f"{self._patience_s:g} s: check the cable and that it is flashed"
                )
            if not data:
                # A board that is only slow must not drown in repetitions.
                self.transport.write(self.end.timeout())
                retry_s = min(2 * retry_s, self._patience_s / 2)

    def _acknowledge(self) -> None:
        out = self.end.transmit()
        if out:
            self.transport.write(out)

    def close(self) -> None:
        self.transport.close()

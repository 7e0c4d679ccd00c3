"""Commands of an engine as words, and its answers as plain values."""

from hw.rtl.engine_words import head_layout, head_words
from hw.rtl.layouts import tuple_layout, word_layout
from hw.spec import JoinParams
from hw.spec.commands import Opcode
from hw.spec.predicates import registers
from sim.stream_bfm import Codec

__all__ = ["EngineCommands", "share_of"]

NO_BAND = {"lo": 0, "hi": 0, "lo_bound": 0, "hi_bound": 0}


def share_of(tuples, cores, core, before=0):
    """The tuples that a core stores of a batch, `before` being those since CREATE."""
    return tuples[(core - before) % cores :: cores]


class EngineCommands:
    """Makes the words of commands for engines of `params`."""

    def __init__(self, params: JoinParams):
        self.params = params
        self.head = Codec(head_layout(params))
        self.word = Codec(word_layout(params))
        command = {name: 0 for name, _, _ in Codec(head_layout(params)["command"].shape).fields}
        self.no_command = command | {"bands": [NO_BAND] * params.bands}

    def words(self, opcode, side, subwindow, count, *, star_every=0, ordered=0, scan=0, **fields):
        """The head of a command."""
        command = self.no_command | {
            "opcode": opcode, "side": side, "subwindow": subwindow, "count": count, **fields,
        }
        bits = self.head.pack(
            {"command": command, "star_every": star_every, "ordered": ordered, "scan": scan}
        )
        lanes, width = self.params.lanes, self.word.width
        return [
            {"data": self.word.unpack(bits >> (n * width)), "count": lanes, "end": 0}
            for n in range(head_words(self.params))
        ]

    def insert(self, side, subwindow, tuples):
        rows = [{"key": int(key), "rid": int(rid)} for key, rid in tuples.tolist()]
        return self.words(Opcode.INSERT, side, subwindow, len(rows)) + self.payload(rows)

    def probe(self, stored, subwindow, keys, predicate, **more):
        words = registers(predicate, stored.other, self.params.key_bits)
        bands = [{name: int(word[name]) for name in NO_BAND} for word in words]
        head = self.words(
            Opcode.PROBE, stored, subwindow, len(keys), band_count=len(words),
            bands=bands + [NO_BAND] * (self.params.bands - len(bands)),
            negated=int(predicate.negated), chunk_words=1, **more,
        )
        return head + self.payload([{"key": int(key), "rid": 0} for key in keys])

    def payload(self, rows):
        """Words with rows, and the end word."""
        lanes = self.params.lanes
        nothing = Codec(tuple_layout(self.params)).unpack(0)
        words = []
        for first in range(0, len(rows), lanes):
            some = rows[first : first + lanes]
            filled = some + [nothing] * (lanes - len(some))
            words.append({"data": filled, "count": len(some), "end": 0})
        return [*words, {"data": [nothing] * lanes, "count": 0, "end": 1}]

"""Bytes between a host and an engine of several join cores, above the link and below commands.

    command   its head in words, and for INSERT and PROBE words of items and one word with `end`
    word      a byte WORD, then `count` items: tuples, or keys alone where `keys`
    answer    bytes ANSWER, each followed by a RESULT where `present`; one with `last` is the end
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["ANSWER", "HEAD_FIELDS", "RESULT", "WORD", "Answer", "head_bytes", "items_bytes",
           "read_answer"]

#: Fields of the byte before a word's items, with their bits, the first in the low bits.
WORD = (("count", 4), ("end", 1), ("keys", 1), ("unused", 2))
#: Fields of the byte that begins an answer.
ANSWER = (("stars", 4), ("side", 1), ("last", 1), ("present", 1), ("reply", 1))
#: What follows it: a record that is not empty and its number, or a core's reply.
RESULT = np.dtype([("core", "u1"), ("number", "<u4"), ("start", "<u4"), ("end", "<u4")])
#: Fields of a head besides its command's.
HEAD_FIELDS = ("star_every", "ordered", "scan")


def _word(count: int, *, end: bool = False, keys: bool = False) -> int:
    return count | end << 4 | keys << 5


def head_bytes(layout: Mapping, values: Mapping[str, int], lanes: int, tuple_bytes: int) -> bytes:
    """A command's head; `layout` has its bits, and [offset, width] of its fields by name."""
    bits = 0
    for name, value in values.items():
        offset, width = layout["fields"][name]
        bits |= (int(value) & ((1 << width) - 1)) << offset
    size = lanes * tuple_bytes
    words = -(-layout["bits"] // (8 * size))
    body = bits.to_bytes(words * size, "little")
    head = bytes([_word(lanes)])
    return b"".join(head + body[at : at + size] for at in range(0, len(body), size))


def items_bytes(items: np.ndarray, lanes: int) -> bytes:
    """Tuples (a structured array) or keys as words of at most `lanes`, and the end word."""
    keys = items.dtype.fields is None
    whole = len(items) // lanes * lanes
    size = items.dtype.itemsize
    words = np.empty((whole // lanes, 1 + lanes * size), np.uint8)
    words[:, 0] = _word(lanes, keys=keys)
    words[:, 1:] = np.frombuffer(items[:whole].tobytes(), np.uint8).reshape(-1, lanes * size)
    rest = items[whole:]
    short = bytes([_word(len(rest), keys=keys)]) + rest.tobytes() if len(rest) else b""
    return words.tobytes() + short + bytes([_word(0, end=True, keys=keys)])


@dataclass(frozen=True)
class Answer:
    """An engine's answer to one command.

    results  RESULT of every record that is not empty, in the order in which they came
    groups   the star that each of them came before: its number among the answer's stars
    replies  RESULT of every core
    """

    side: int
    results: np.ndarray
    groups: np.ndarray
    replies: np.ndarray


def read_answer(read) -> Answer:  # type: ignore[no-untyped-def]
    """The next answer of `read(count)`, which gives so many bytes."""
    found: list[bytes] = []
    replies: list[bytes] = []
    groups: list[int] = []
    stars = 0
    while True:
        (head,) = read(1)
        stars += head & 15
        if head >> 6 & 1:
            body = read(RESULT.itemsize)
            if head >> 7:
                replies.append(body)
            else:
                found.append(body)
                groups.append(stars)
        if head >> 5 & 1:
            return Answer(head >> 4 & 1, _results(found), np.array(groups, np.int64),
                          _results(replies))


def _results(parts: Sequence[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(parts), RESULT)

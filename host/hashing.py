"""Deterministic 64-bit hashes of key values: equal values have equal hashes, on every machine.

Unequal values may share one, so that whoever joins on hashes compares the values again.
"""

import numpy as np
import pyarrow as pa

__all__ = ["combined", "hashes_of_integers", "hashes_of_texts"]

_GOLDEN = 0x9E3779B97F4A7C15
#: Longer texts are hashed by their length and this many bytes from each end.
_END_BYTES = 128


#: Masks of the first n bytes of a little-endian word.
_FIRST_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def hashes_of_integers(data: np.ndarray) -> np.ndarray:
    """Hashes of int64, as uint64 (the finalizer of splitmix64)."""
    words = data.view(np.uint64) + np.uint64(_GOLDEN)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def combined(hashes: list[np.ndarray]) -> np.ndarray:
    """One hash for several values of a row; their order counts."""
    result = hashes[0]
    for more in hashes[1:]:
        mixed = (result * np.uint64(_GOLDEN)) ^ more
        result = hashes_of_integers(mixed.view(np.int64))
    return result


def hashes_of_texts(array: pa.Array) -> np.ndarray:
    """Hashes of large strings or binaries, as uint64; eight bytes of all rows at a time."""
    offsets, data = _buffers(array)
    starts, lengths = offsets[:-1], np.diff(offsets)
    result = hashes_of_integers(lengths)
    words = -(-np.minimum(lengths, 2 * _END_BYTES) // 8)
    rows = np.argsort(-words, kind="stable")
    # How many rows, longest first, still have a word number n.
    counts = np.searchsorted(-words[rows], -np.arange(words.max(initial=0)), "left")
    for word, count in enumerate(counts.tolist()):
        some = rows[:count]
        mixed = result[some] ^ _word(data, starts[some], lengths[some], 8 * word)
        result[some] = hashes_of_integers(mixed.view(np.int64))
    return result


def _buffers(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of the rows (one more than rows), and the word of eight bytes from every place on."""
    if not len(array):
        return np.zeros(1, np.int64), np.zeros(1, np.uint64)
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8)
    size = int(places[-1])
    room = np.zeros(size + 8, np.uint8)
    if size:
        room[:size] = np.frombuffer(data, np.uint8, size)
    return places, np.ndarray(size + 1, "<u8", room, strides=(1,))


def _word(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray, at: int) -> np.ndarray:
    """The eight bytes from place `at`, zeros past the end; long texts go on with their tail."""
    long = lengths > 2 * _END_BYTES
    places = starts + at + np.where(long & (at >= _END_BYTES), lengths - 2 * _END_BYTES, 0)
    words = data[places]
    return np.where(long, words, words & _FIRST_BYTES[np.clip(lengths - at, 0, 8)])

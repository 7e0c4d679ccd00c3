"""PO-Join for a batch: one bit array that grows while the batch is walked in its second order.

The paper sets the bits of a tuple's second predicate in an empty bit array and scans it over the
run of the first (section 3.4), once for each tuple. Probes in the order of their second bound
need what the probe before them needed and a little more, so that the whole batch sets each bit
once. Counters of 512 and of 32768 bits take the place of the scan where matches are counted, and
two levels of bits that say which words are not empty where they are listed.
"""

from collections.abc import Iterator

import numpy as np
from numba import njit

from host.indexes.bits import first_one, ones
from host.indexes.lanes import written_byte
from host.indexes.po.listing import Listing

__all__ = ["added_counts", "added_sums", "listings"]

_WORD, _BLOCK, _SUPER = np.uint64(6), np.uint64(9), np.uint64(15)
#: A word's ones are listed at once, and eight places are written for its last byte.
_WHOLE, _BYTE = 64, 8
#: Places of a byte's ones, in eight elements for each of the 256 bytes.
_ONES = np.array([
    [*(n for n in range(8) if byte >> n & 1), *([0] * 8)][:8] for byte in range(256)
], np.uint32).reshape(-1)
_ONE, _LOW, _ALL = np.uint64(1), np.uint64(63), np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def added_counts(
    permutation: np.ndarray, bound: np.ndarray, first: np.ndarray, end: np.ndarray,
    sign: int, totals: np.ndarray,
) -> None:
    """totals[i] += sign * how many of permutation[: bound[i]] are in [first[i], end[i]).

    `permutation` has each of 0 to its length once; `bound` ascends.
    """
    _count(permutation, bound, first, end, sign, totals)


def added_sums(
    permutation: np.ndarray, bound: np.ndarray, first: np.ndarray, end: np.ndarray,
    sign: int, totals: np.ndarray, weights: np.ndarray,
) -> None:
    """The same for sums of `weights` (int64, by position) instead of counts."""
    _sum(permutation, bound, first, end, sign, totals, weights)


def listings(
    permutation: np.ndarray, bound: np.ndarray, first: np.ndarray, end: np.ndarray, most: int
) -> Iterator[Listing]:
    """The positions of all that `added_counts` counts, at most `most` at a time, or 64.

    What a listing holds is valid until the next.
    """
    words = (len(permutation) >> 6) + 2
    bits, some, more = (np.zeros((words >> shift) + 2, np.uint64) for shift in (0, 6, 12))
    state, ends = np.array([0, 0, -1], np.int64), np.empty(len(bound), np.int64)
    room = np.empty(max(most, _WHOLE) + _BYTE, np.uint32)
    while state[0] < len(bound):
        place = int(state[0])
        held = _list(permutation, bound, first, end, bits, some, more, state, ends, room)
        stop = min(int(state[0]) + 1, len(bound))
        yield Listing(place, ends[place:stop], room[:held])


@njit(cache=True, nogil=True)
def _from(bits, blocks, supers, place):  # type: ignore[no-untyped-def]
    """Bits that are set at `place` and above it."""
    word, block, top = place >> _WORD, place >> _BLOCK, place >> _SUPER
    total = np.int64(ones(bits[word] >> (place & _LOW)))
    for n in range(word + _ONE, (block + _ONE) << np.uint64(3)):
        total += np.int64(ones(bits[n]))
    for n in range(block + _ONE, (top + _ONE) << _WORD):
        total += np.int64(blocks[n])
    for n in range(top + _ONE, np.uint64(len(supers))):
        total += np.int64(supers[n])
    return total


@njit(cache=True, nogil=True)
def _count(permutation, bound, first, end, sign, totals):  # type: ignore[no-untyped-def]
    count = len(permutation)
    supers = np.zeros((count >> 15) + 1, np.int32)
    blocks = np.zeros(len(supers) << 6, np.uint16)
    bits = np.zeros(len(blocks) << 3, np.uint64)
    held = 0
    for n in range(len(bound)):
        while held < bound[n]:
            place = np.uint64(permutation[held])
            bits[place >> _WORD] |= _ONE << (place & _LOW)
            blocks[place >> _BLOCK] += np.uint16(1)
            supers[place >> _SUPER] += np.int32(1)
            held += 1
        # A run that begins or ends with the array needs no look at that end.
        above = held if first[n] == 0 else _from(bits, blocks, supers, np.uint64(first[n]))
        beyond = 0 if end[n] == count else _from(bits, blocks, supers, np.uint64(end[n]))
        totals[n] += sign * (above - beyond)


@njit(cache=True, nogil=True)
def _sum_from(bits, weights, words, blocks, place):  # type: ignore[no-untyped-def]
    """Weights of the bits that are set at `place` and above it."""
    word = place >> _WORD
    block = place >> np.uint64(12)
    total = np.int64(0)
    mask = bits[word] & (_ALL << (place & _LOW))
    while mask:
        total += weights[(word << _WORD) + first_one(mask)]
        mask &= mask - _ONE
    for n in range(word + _ONE, (block + _ONE) << _WORD):
        total += words[n]
    for n in range(block + _ONE, np.uint64(len(blocks))):
        total += blocks[n]
    return total


@njit(cache=True, nogil=True)
def _sum(permutation, bound, first, end, sign, totals, weights):  # type: ignore[no-untyped-def]
    count = len(permutation)
    blocks = np.zeros((count >> 12) + 1, np.int64)
    words = np.zeros(len(blocks) << 6, np.int64)
    bits = np.zeros(len(words), np.uint64)
    held, whole = 0, np.int64(0)
    for n in range(len(bound)):
        while held < bound[n]:
            place = np.uint64(permutation[held])
            weight = weights[place]
            bits[place >> _WORD] |= _ONE << (place & _LOW)
            words[place >> _WORD] += weight
            blocks[place >> np.uint64(12)] += weight
            whole += weight
            held += 1
        above = whole
        if first[n] > 0:
            above = _sum_from(bits, weights, words, blocks, np.uint64(first[n]))
        beyond = np.int64(0)
        if end[n] < count:
            beyond = _sum_from(bits, weights, words, blocks, np.uint64(end[n]))
        totals[n] += sign * (above - beyond)


@njit(cache=True, nogil=True)
def _list(  # type: ignore[no-untyped-def]
    permutation, bound, first, end, bits, some, more, state, ends, positions
):
    """Go on at `state` (rectangle, bits set, place) until there is no room; how many were put.

    some, more  a bit for each word of `bits` that is not 0, and for each of `some`
    ends        how many were put when each rectangle was done, or the room
    """
    n, held, begun = state[0], state[1], state[2]
    put, most = np.uint64(0), np.uint64(len(positions) - _BYTE - _WHOLE)
    while n < len(bound):
        while held < bound[n]:
            place = np.uint64(permutation[held])
            before = bits[place >> _WORD]
            bits[place >> _WORD] = before | (_ONE << (place & _LOW))
            if not before:
                some[place >> np.uint64(12)] |= _ONE << ((place >> _WORD) & _LOW)
                more[place >> np.uint64(18)] |= _ONE << ((place >> np.uint64(12)) & _LOW)
            held += 1
        stop = np.uint64(end[n])
        place = np.uint64(begun) if begun >= 0 else np.uint64(first[n])
        begun = -1
        word = place >> _WORD
        mask = bits[word] & (_ALL << (place & _LOW))
        while (word << _WORD) < stop:
            if put > most:
                state[0], state[1], state[2] = n, held, max(place, word << _WORD)
                ends[n] = put
                return put
            base = word << _WORD
            if base + np.uint64(64) > stop:
                mask &= ~(_ALL << (stop & _LOW))
            put += _put_ones(mask, base, positions, put)
            word += _ONE
            mask = bits[word]
            # Where many match, the next word has some, too, and nothing waits for where it is.
            if not mask:
                word = _next_word(some, more, word)
                mask = bits[min(word, np.uint64(len(bits) - 1))]
        ends[n] = put
        n += 1
    state[0], state[1], state[2] = n, held, -1
    return put


@njit(cache=True, nogil=True)
def _put_ones(mask, base, positions, put):  # type: ignore[no-untyped-def]
    """List the ones of a word; how many they are.

    Eight places are written for every byte, since how many ones it has cannot be foreseen. What
    is written behind the last one is overwritten by what comes next.
    """
    count = ones(mask)
    for byte in range(np.uint64(0), np.uint64(64), np.uint64(8)):
        eight = (mask >> byte) & np.uint64(0xFF)
        written_byte(positions, put, _ONES, eight << np.uint64(3), np.uint32(base + byte))
        put += ones(eight)
    return count


@njit(cache=True, nogil=True)
def _next_word(some, more, word):  # type: ignore[no-untyped-def]
    """First word from `word` on that is not 0; a number beyond all if there is none."""
    group = word >> _WORD
    found = some[group] & (_ALL << (word & _LOW))
    if not found:
        group += _ONE
        top = group >> _WORD
        groups = more[top] & (_ALL << (group & _LOW))
        while not groups:
            top += _ONE
            if top >= np.uint64(len(more)):
                return np.uint64(len(more)) << np.uint64(12)
            groups = more[top]
        group = (top << _WORD) + first_one(groups)
        found = some[group]
    return (group << _WORD) + first_one(found)

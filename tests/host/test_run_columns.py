"""Writers of pairs' columns beside what a double loop says."""

import numpy as np
import pytest

from host.run_columns import (
    SLACK,
    count_candidates,
    count_offsets,
    write_copy,
    write_copy_seen,
    write_gather,
    write_gather_seen,
    write_repeat,
)

WIDTHS = ["u1", "u2", "u4", "u8"]
#: What no writer may reach.
_BEYOND = 32
_STORED = 200


class Case:
    """Random runs of up to `longest` positions, two to a probe, and what is seen of them."""

    def __init__(self, seed, kind, longest, partly):
        random = np.random.default_rng(seed)
        self.probes, self.runs, self.partly = 25, 2, partly
        sizes = random.integers(0, longest + 1, 2 * self.probes)
        ends = random.integers(sizes, _STORED + 1)
        ends[-4:] = _STORED  # those that end with the array
        self.records = np.stack([np.maximum(ends - sizes, 0), ends], axis=1).astype(np.uint32)
        self.rids = random.permutation(_STORED).astype(np.uint32)
        self.first = random.integers(0, _STORED // 2, self.probes).astype(np.uint32)
        self.rows = random.integers(0, _STORED, self.probes).astype(np.uint32)
        most = np.iinfo(kind).max
        self.own = random.integers(0, most, self.probes, kind)
        # A ring of which the last rids are one turn further back.
        self.ring = random.integers(0, most, _STORED + 11, kind)
        self.shift = 50
        self.column = self.ring[(self.rids + self.shift) % len(self.ring)]
        self.arranged = np.concatenate([self.column, np.zeros(SLACK, kind)])

    def pairs(self):
        """(probe, position) of all of them, and how many there are before each record."""
        found, offsets = [], [0]
        for number, (start, end) in enumerate(self.records.tolist()):
            probe = number // self.runs
            low, rows = int(self.first[probe]), int(self.rows[probe])
            for position in range(start, end):
                if not self.partly or 0 <= int(self.rids[position]) - low < rows:
                    found.append((probe, position))
            offsets.append(len(found))
        return np.array(found).reshape(-1, 2).T, offsets

    @property
    def seen(self):
        return self.records, self.runs, self.rids, self.first, self.rows

    def written(self, name, offsets, begin, size):
        """What a writer gives, and that it keeps to its room."""
        out = np.full(size + SLACK + _BEYOND, 77, self.own.dtype)
        whole = (offsets, self.records)
        arguments = {
            "repeat": (write_repeat, offsets, self.runs, self.own),
            "copy": (write_copy, *whole, self.arranged),
            "gather": (write_gather, *whole, self.rids, self.ring, self.shift),
            "copy seen": (write_copy_seen, offsets, *self.seen, self.arranged),
            "gather seen": (write_gather_seen, offsets, *self.seen, self.ring, self.shift),
        }
        write, *given = arguments[name]
        write(*given, begin, size, out)
        assert (out[-_BEYOND:] == 77).all()
        return out[:size]


@pytest.mark.parametrize("partly", [False, True])
@pytest.mark.parametrize("longest", [1, 20, 150])
@pytest.mark.parametrize("kind", WIDTHS)
def test_columns_are_those_of_the_pairs(kind, longest, partly):
    case = Case(longest, kind, longest, partly)
    (probes, positions), expected = case.pairs()
    offsets = count_offsets(*case.seen, partly)
    assert offsets.tolist() == expected
    assert count_candidates(case.records) == (case.records[:, 1] - case.records[:, 0]).sum()
    writers = ["copy seen", "gather seen"] if partly else ["copy", "gather"]
    total = len(probes)
    for begin in {0, 1, total // 3, total - 1}:
        for wanted in {1, 5, total // 4, total - begin}:
            size = max(1, min(wanted, total - begin))
            chosen = slice(begin, begin + size)
            own = case.written("repeat", offsets, begin, size)
            assert own.tolist() == case.own[probes[chosen]].tolist()
            for name in writers:
                column = case.written(name, offsets, begin, size)
                assert column.tolist() == case.column[positions[chosen]].tolist(), name

"""What the engines promise, by definition and without an engine."""

import numpy as np

from hw.spec import reference
from hw.spec.tuples import NOT
from tests.helpers import make_tuples

__all__ = ["assert_finds", "dealt", "insert_all", "keys_by_rid", "runs_of"]


def keys_by_rid(stored):
    """The key of each rid, of batches of keys in their order of arrival."""
    return [int(key) for batch in stored for key in batch]


def insert_all(engine, side, number, batches, key_bits):
    """Store batches of unsorted keys, as the manager would."""
    first = 0
    for batch in batches:
        engine.insert(side, number, make_tuples(batch, key_bits, first))
        first += len(batch)


def dealt(batches, cores, key_bits, turn=0):
    """Tuples of each core when sorted batches are dealt one by one, in order of position."""
    shares, first = [[] for _ in range(cores)], 0
    for batch in batches:
        for row in make_tuples(batch, key_bits, first):
            shares[turn % cores].append((int(row["key"]), int(row["rid"])))
            turn += 1
        first += len(batch)
    return [row for share in shares for row in sorted(share)]


def runs_of(records):
    """(start, end) of one probe's non-empty records."""
    pairs = [(int(record["start"]), int(record["end"] & ~NOT)) for record in records]
    return [(start, end) for start, end in pairs if start != end]


def assert_finds(engine, stored, number, keys, predicate, probes, records):
    """One subwindow's records name the rids that match, each once; keys[rid] was stored."""
    rids = engine.rids(stored, number)
    assert sorted(rids.tolist()) == list(range(len(keys)))
    order = sorted(range(len(keys)), key=lambda rid: keys[rid])
    ascending = [keys[rid] for rid in order]
    for key, found in zip(probes, records, strict=True):
        inside = np.zeros(len(rids), int)
        for start, end in runs_of(found):
            inside[start:end] += 1
        assert inside.max(initial=0) <= 1
        wanted = np.zeros(len(rids), int)
        for start, end in reference.probe_records(ascending, int(key), stored.other, predicate):
            wanted[order[start:end]] = 1
        if predicate.negated:
            wanted = 1 - wanted
        negated = bool(len(found)) and bool(found[0]["end"] & NOT)
        assert sorted(rids[inside == (0 if negated else 1)]) == np.flatnonzero(wanted).tolist()

"""Hashes: equal values share one, others hardly ever do, and they never change."""

import numpy as np
import pyarrow as pa

from host.hashing import combined, hashes_of_integers, hashes_of_texts


def texts(values):
    return pa.array(values, pa.large_string())


def test_hashes_are_the_same_on_every_machine_and_version():
    """They are written into snapshots and agreed on between workers."""
    assert hashes_of_integers(np.array([0, 1, -1, 2**62])).tolist() == [
        16294208416658607535, 10451216379200822465, 16490336266968443936, 47939714376772075]
    assert hashes_of_texts(texts(["", "a", "12345678", "123456789"])).tolist() == [
        16294208416658607535, 6774081908283191102, 9501447833425779875, 9003943604911055402]


def test_equal_texts_have_equal_hashes_wherever_they_lie():
    rows = ["", "a", "ab", "abcdefgh", "abcdefghi", "é", "x" * 1000]
    alone = [hashes_of_texts(texts([row]))[0] for row in rows]
    assert hashes_of_texts(texts(["filler", *rows, "more"])[1:-1]).tolist() == alone
    assert len(set(alone)) == len(rows)
    assert hashes_of_texts(pa.array([b"ab"], pa.large_binary()))[0] == alone[2]
    assert len(hashes_of_texts(texts([]))) == 0


def test_texts_that_differ_in_one_place_differ():
    for length in (1, 7, 8, 9, 63, 255, 256, 257, 400):
        whole = "x" * length
        places = [p for p in range(length) if p < 128 or p >= length - 128]
        changed = [whole[:p] + "y" + whole[p + 1:] for p in places]
        hashes = hashes_of_texts(texts([whole, *changed, whole + "\0"]))
        assert len(set(hashes.tolist())) == len(places) + 2


def test_few_collisions():
    numbers = hashes_of_integers(np.arange(-50_000, 50_000))
    assert len(np.unique(numbers)) == 100_000
    assert len(np.unique(numbers >> np.uint64(32))) > 99_990
    assert len(np.unique(hashes_of_texts(texts([f"key {i}" for i in range(20_000)])))) == 20_000


def test_the_order_of_combined_values_counts():
    one, two = hashes_of_integers(np.array([1])), hashes_of_integers(np.array([2]))
    assert combined([one, two]) != combined([two, one])
    assert combined([one]) == one

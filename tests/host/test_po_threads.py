"""SPO-Join's threads: everything of every source, each source in its order."""

import threading
import time

import pytest

from host.indexes.po.threads import Threads


@pytest.fixture
def threads():
    made = Threads(2)
    yield made
    made.close()


def test_all_items_come_and_those_of_a_source_in_order(threads):
    def source(letter, count):
        for number in range(count):
            if number % 7 == 3:
                time.sleep(0.002)
            yield letter, number

    counts = {"a": 30, "b": 0, "c": 1, "d": 12}
    found = list(threads.ahead(source(*one) for one in counts.items()))
    assert len(found) == sum(counts.values())
    for letter, count in counts.items():
        assert [number for name, number in found if name == letter] == list(range(count))


def test_a_source_is_not_read_to_its_end_before_its_items_are(threads):
    made = []

    def source():
        for number in range(300):
            made.append(number)
            time.sleep(0.002)
            yield number

    items = threads.ahead([source()])
    assert next(items) == 0
    time.sleep(0.1)
    assert len(made) < 10
    assert list(items) == list(range(1, 300))


def test_two_sources_are_read_side_by_side(threads):
    """Each waits for the other: one after the other they would never end."""
    both = threading.Barrier(2)

    def source():
        both.wait(30)
        yield 1

    assert list(threads.ahead([source(), source()])) == [1, 1]


def test_what_a_source_raises_reaches_the_reader(threads):
    def source():
        yield 1
        raise ValueError("broken")

    with pytest.raises(ValueError, match=r"^broken$"):
        list(threads.ahead([source()]))
    assert threads.together([lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]

"""One thread that works ahead of its reader."""

import threading
import time

import pytest

from host.pipeline import LARGE, Pipeline
from tests.helpers import exactly


def letters(item):
    yield from item


@pytest.fixture
def pipeline():
    made = []

    def make(work, **more):
        made.append(Pipeline(work, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()
        assert not each._thread.is_alive()


def test_results_come_in_order_item_by_item(pipeline):
    running = pipeline(letters)
    assert list(running.results()) == []
    for item in ("abc", "", "d"):
        running.start(item)
        assert running.busy
        assert list(running.results()) == list(item)
        assert not running.busy


def test_work_runs_beside_the_caller(pipeline):
    begun, may_end = threading.Event(), threading.Event()

    def work(item):
        begun.set()
        assert may_end.wait(30)
        yield item

    running = pipeline(work)
    running.start("a")
    assert begun.wait(30)
    may_end.set()
    assert list(running.results()) == ["a"]


def test_work_is_only_a_few_results_ahead(pipeline):
    made = []

    def work(count):
        for number in range(count):
            made.append(number)
            yield number

    running = pipeline(work, ahead=2)
    running.start(100)
    results = running.results()
    assert next(results) == 0
    time.sleep(0.2)
    # Two wait in the queue, one waits for room.
    assert len(made) <= 4
    assert list(results) == list(range(1, 100))


def test_more_of_small_results_are_ahead(pipeline):
    """Eight of a quarter of a place each, and one that waits."""
    made = []

    def work(count):
        for number in range(count):
            made.append(number)
            yield number

    running = pipeline(work, size=lambda _: LARGE // 4 - LARGE // 16)
    running.start(100)
    results = running.results()
    while len(made) < 9:
        time.sleep(0.01)
    time.sleep(0.2)
    assert len(made) == 9
    assert list(results) == list(range(100))


def test_what_the_work_raises_reaches_the_reader_after_its_results(pipeline):
    def work(item):
        yield 1
        raise ValueError("no more")

    running = pipeline(work)
    running.start(None)
    results = running.results()
    assert next(results) == 1
    with pytest.raises(ValueError, match=exactly("no more")):
        next(results)
    assert not running.busy
    running.start(None)
    assert next(running.results()) == 1


def test_closing_does_not_wait_for_a_reader(pipeline):
    running = pipeline(letters)
    running.start("a" * 1_000)
    begin = time.monotonic()
    running.close()
    assert time.monotonic() - begin < 10
    assert list(running.results()) == []


def test_closing_does_not_wait_for_a_reader_of_a_failure():
    """The failure finds no room and no reader; the thread ends without a word."""
    failing = threading.Event()

    def work(item):
        yield 1
        failing.set()
        raise ValueError("unread")

    running = Pipeline(work, ahead=1)
    running.start(None)
    assert failing.wait(30)
    running.close()
    assert not running._thread.is_alive()


def test_work_of_the_reader_is_done_as_it_is_read(pipeline):
    made = []

    def work(item):
        for letter in item:
            made.append((letter, threading.current_thread()))
            yield letter
        if item == "c":
            raise ValueError("no more")

    running = pipeline(work)
    running.start("ab", here=True)
    results = running.results()
    assert made == [] and next(results) == "a"
    # Left and read on later, by whoever reads then.
    del results
    assert running.busy and list(running.results()) == ["b"]
    assert made == [(letter, threading.current_thread()) for letter in "ab"]
    running.start("c", here=True)
    results = running.results()
    assert next(results) == "c"
    with pytest.raises(ValueError, match=exactly("no more")):
        next(results)
    assert not running.busy and not running.cut_short
    running.start("d")
    assert list(running.results()) == ["d"]

"""SplitJoin's collection: stars, and the order of results between them."""

import numpy as np
import pytest

from host.errors import BackendUnavailable
from hw.opencl.fpga.channel_device import DeviceStuck
from hw.opencl.fpga.source import STAR
from hw.spec.predicates import Band, Predicate, compare, registers
from hw.spec.tuples import NOT, Side, key_dtype
from tests.helpers import exactly, make_tuples

PREDICATE = Predicate((Band(-2, 0), Band(3, 4)))


@pytest.fixture
def ready(engine):
    """An engine with three subwindows, one of them empty, and probe keys of 32 or 64 bits."""
    for number, rows in enumerate((50, 0, 9)):
        engine.create(Side.LEFT, number, 50)
        keys = np.random.default_rng(number).integers(0, 30, rows)
        engine.insert(Side.LEFT, number, make_tuples(keys, engine.params.key_bits))
    return engine, np.arange(-3, 33, 2, dtype=key_dtype(engine.params.key_bits))


def collected(engine, keys, order, predicate=PREDICATE, subwindows=(0, 1, 2)):
    words = registers(predicate, Side.RIGHT, engine.params.key_bits)
    table, streams = engine.probe(
        Side.LEFT, subwindows, keys, words, negated=predicate.negated, order=order, keep=True
    )
    assert len(streams) == 1, "small batches are one launch"
    return table, streams[0]


def frames_of(stream):
    """The results before each star."""
    frames = [[]]
    for word in stream.tolist():
        if word[2] == STAR:
            frames.append([])
        else:
            frames[-1].append(word)
    assert frames.pop() == [], "a star is the last word"
    return frames


def nonempty(table):
    """What the stream has to carry, by subwindow, probe and run."""
    return [
        (*place, int(table["start"][place]), int(table["end"][place]))
        for place in np.ndindex(table.shape)
        if table["start"][place] != table["end"][place]
    ]


def test_without_order_everything_is_before_one_star(ready):
    table, stream = collected(*ready, "none")
    (frame,) = frames_of(stream)
    assert sorted(frame) == nonempty(table)


def test_outer_order_keeps_each_probes_results_together(ready):
    engine, keys = ready
    table, stream = collected(engine, keys, "outer")
    frames = frames_of(stream)
    assert len(frames) == 3 * len(keys) + 1
    assert frames.pop() == [], "the final star"
    for number, frame in enumerate(frames):
        assert {word[:2] for word in frame} <= {divmod(number, len(keys))}
    assert sorted(word for frame in frames for word in frame) == nonempty(table)


def test_strict_order_is_by_core_too(ready):
    engine, keys = ready
    table, stream = collected(engine, keys, "strict")
    wanted = sorted(nonempty(table), key=lambda word: (*word[:2], word[2] % engine.params.cores))
    assert [word for frame in frames_of(stream) for word in frame] == wanted


@pytest.mark.parametrize("order", ["none", "outer", "strict"])
def test_orders_change_nothing_else(ready, order):
    assert collected(*ready, order)[0].tobytes() == collected(*ready, "none")[0].tobytes()


@pytest.mark.parametrize("order", ["none", "outer", "strict"])
def test_where_nothing_is_stored_stars_still_come(ready, order):
    engine, keys = ready
    table, stream = collected(engine, keys, order, subwindows=(1,))
    frames = frames_of(stream)
    assert len(frames) == (1 if order == "none" else len(keys) + 1)
    assert not any(frames) and nonempty(table) == []


def test_records_of_a_negated_predicate_all_carry_not(ready):
    engine, keys = ready
    table, stream = collected(engine, keys, "strict", compare("<>"))
    assert (table["end"] & NOT != 0).all()
    results = stream[stream["run"] != STAR]
    assert len(results) == table.size
    assert (results["end"] & NOT != 0).all()


class Endless:
    """The event of a kernel that waits for a channel for ever."""

    command_execution_status = 1


def test_a_kernel_that_does_not_end_is_an_error_and_the_last_one(backend):
    message = "kernel merge_0_0 did not end in 0 s"
    engine = backend._engine
    try:
        with pytest.raises(DeviceStuck, match=exactly(message)):
            engine._loaded._await(["merge_0_0"], [Endless()], timeout_s=0)
        backend.create(Side.LEFT, 0, 1)
        with pytest.raises(BackendUnavailable, match=exactly(message)):
            backend.insert(Side.LEFT, 0, make_tuples([1], backend.params.key_bits))
    finally:
        engine._loaded.broken = ""

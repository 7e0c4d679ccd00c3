"""Sizes of an engine."""

import pytest

from hw.spec.params import JoinParams, parse_params
from tests.helpers import exactly


def test_the_defaults_are_sizes_that_fit():
    assert JoinParams() == JoinParams(key_bits=32, subwindow=1 << 16)


@pytest.mark.parametrize("key_bits", [0, 16, 33, 128])
def test_a_key_has_32_or_64_bits(key_bits):
    with pytest.raises(ValueError, match=exactly(f"key_bits must be 32 or 64, not {key_bits}")):
        JoinParams(key_bits=key_bits)


@pytest.mark.parametrize("subwindow", [0, -1, 1 << 31])
def test_a_subwindow_leaves_the_not_bit_free(subwindow):
    message = f"subwindow must be from 1 to 2147483647, not {subwindow}"
    with pytest.raises(ValueError, match=exactly(message)):
        JoinParams(subwindow=subwindow)


@pytest.mark.parametrize("subwindow", [1, 3, (1 << 31) - 1])
def test_a_subwindow_may_have_any_other_size(subwindow):
    assert JoinParams(subwindow=subwindow).subwindow == subwindow


@pytest.mark.parametrize(
    "name", ["partitions", "insert_buffer", "mergers", "lanes", "probers", "cores"]
)
@pytest.mark.parametrize("value", [0, -2, 3, 100])
def test_counts_of_parts_are_powers_of_two(name, value):
    with pytest.raises(ValueError, match=exactly(f"{name} must be a power of two, not {value}")):
        JoinParams(**{name: value})


@pytest.mark.parametrize("bands", [0, 5])
def test_a_probe_asks_for_one_to_four_bands(bands):
    with pytest.raises(ValueError, match=exactly(f"bands must be from 1 to 4, not {bands}")):
        JoinParams(bands=bands)


@pytest.mark.parametrize(
    ("subwindow", "partitions", "rows"),
    [(1024, 1024, 1), (1024, 16, 64), (1000, 16, 63), (3, 8, 1)],
)
def test_partitions_share_a_subwindow_evenly(subwindow, partitions, rows):
    params = JoinParams(subwindow=subwindow, partitions=partitions)
    assert params.partition_rows == rows
    assert rows * partitions >= subwindow


def test_params_cannot_change():
    with pytest.raises(AttributeError):
        JoinParams().subwindow = 7


def test_sizes_are_written_as_text_or_as_a_mapping():
    wanted = JoinParams(key_bits=64, mergers=4, bands=2)
    assert parse_params(" mergers = 4, bands=2", key_bits=64) == wanted
    assert parse_params({"mergers": 4, "bands": 2}, key_bits=64) == wanted
    assert parse_params(None) == parse_params({}) == JoinParams()


def test_the_papers_mode_brings_the_papers_sizes():
    paper = JoinParams(mode="paper", partitions=1 << 16, insert_buffer=1 << 10)
    assert parse_params("mode=paper") == paper
    assert parse_params("mode=paper,partitions=512").partitions == 512


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("mergers", "sizes are written like mergers=4, not 'mergers'"),
        ("mergers=many", "mergers must be a whole number, not 'many'"),
        ({"mergers": True}, "mergers must be a whole number, not True"),
        ("mergers=3", "mergers must be a power of two, not 3"),
        ("mode=fast", "mode must be tiered or paper, not 'fast'"),
        (
            "key_bits=64",
            "an engine has no 'key_bits': choose of subwindow, partitions, insert_buffer, bands, "
            "mergers, lanes, probers, cores, mode",
        ),
    ],
)
def test_sizes_that_cannot_be_are_refused(given, message):
    with pytest.raises(ValueError, match=exactly(message)):
        parse_params(given, key_bits=32)

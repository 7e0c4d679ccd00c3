"""The other vendor's words in channels.h: the same engine, its pipes played by channels."""

import numpy as np
import pytest

from hw.opencl.fpga import engine as engine_module
from hw.opencl.fpga.channel_device import find_device
from hw.opencl.fpga.engine import Engine
from hw.opencl.fpga.source import source
from hw.spec.params import JoinParams
from hw.spec.predicates import Band, Predicate, registers
from hw.spec.tuples import Side
from tests.helpers import make_tuples
from tests.opencl.fpga.model import assert_finds, dealt, insert_all

PARAMS = JoinParams(key_bits=64, partitions=8, mergers=1, probers=1, bands=2)
#: What a compiler for pipes has built in.
PIPES = """
#pragma OPENCL EXTENSION cl_intel_channels : enable
#define XILINX
#define pipe channel
#define xcl_reqd_pipe_depth(words) depth(words)
#define xcl_pipeline_loop(interval)
#define write_pipe_block(name, value) write_channel_intel(name, *(value))
#define read_pipe_block(name, value) (*(value) = read_channel_intel(name))
#define read_pipe(name, value) \\
    ({ bool came; *(value) = read_channel_nb_intel(name, &came); came ? 0 : -1; })
"""


@pytest.fixture
def piped(monkeypatch):
    monkeypatch.setattr(engine_module, "source", lambda *sizes: PIPES + source(*sizes))
    opened = Engine(PARAMS, find_device(), timeout_s=20.0)
    yield opened
    opened.close()


def test_an_engine_of_pipes_joins_as_one_of_channels(piped):
    random = np.random.default_rng(8)
    batches = [random.integers(-40, 40, size).tolist() for size in (90, 1, 30)]
    piped.create(Side.LEFT, 0, 121)
    insert_all(piped, Side.LEFT, 0, batches, 64)
    assert piped.tuples(Side.LEFT, 0).tolist() == dealt(batches, 1, 64)
    keys = np.arange(-45, 45, 2)
    predicate = Predicate((Band(None, -30), Band(-3, 4)))
    records, _ = piped.probe(Side.LEFT, [0], keys, registers(predicate, Side.RIGHT, 64))
    stored = [key for batch in batches for key in batch]
    assert_finds(piped, Side.LEFT, 0, stored, predicate, keys, records[0])


def test_an_empty_main_array_takes_a_batch_of_pipes(piped):
    piped.create(Side.RIGHT, 0, 1)
    piped.insert(Side.RIGHT, 0, make_tuples([5], 64))
    assert piped.tuples(Side.RIGHT, 0).tolist() == [(5, 0)]

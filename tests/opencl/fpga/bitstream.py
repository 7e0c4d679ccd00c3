"""A binary of the FPGA form, kept as an .aocx and loaded by a device that compiles nothing."""

from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest

from hw import bitstreams
from hw.opencl import binaries
from hw.opencl.devices import DeviceError
from hw.opencl.fpga.channel_device import find_device
from hw.opencl.fpga.engine import Engine
from hw.opencl.fpga.source import sizes_of, source
from hw.spec.params import JoinParams
from hw.spec.predicates import Band, Predicate, registers
from hw.spec.tuples import Side
from tests.opencl.fpga.model import assert_finds, insert_all

PARAMS = JoinParams(partitions=8, mergers=1, probers=1, bands=1)


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
def test_what_was_compiled_ahead_joins_without_its_source(tmp_path, monkeypatch):
    monkeypatch.setattr(bitstreams, "FOLDER", tmp_path / "bitstreams")
    where = find_device()
    context = cl.Context([where.device.handle])
    text = source(PARAMS, where.depth, where.key_depth)
    built = cl.Program(context, text).build(["-Werror", "-cl-std=CL1.2"])
    path = tmp_path / "engine.aocx"
    path.write_bytes(built.get_info(cl.program_info.BINARIES)[0])
    sizes = ",".join(f"{name}={value}" for name, value in sizes_of(PARAMS).items())
    kept = binaries.add(path, params=sizes)
    (entry,) = bitstreams.read_manifest().values()
    assert (entry.file, entry.read()) == (kept.name, path.read_bytes())
    assert entry.params == {"engine": "fpga", **sizes_of(PARAMS)}

    card = replace(where, compiles=False)
    engine = Engine(PARAMS, card, timeout_s=20.0)
    batches = [np.random.default_rng(4).integers(-40, 40, size).tolist() for size in (50, 1, 9)]
    engine.create(Side.LEFT, 0, 60)
    insert_all(engine, Side.LEFT, 0, batches, 32)
    keys, predicate = np.arange(-45, 45, 3, np.int32), Predicate((Band(-3, 4),))
    records, _ = engine.probe(Side.LEFT, [0], keys, registers(predicate, Side.RIGHT, 32))
    stored = [key for batch in batches for key in batch]
    assert_finds(engine, Side.LEFT, 0, stored, predicate, keys, records[0])
    engine.close()

    with pytest.raises(DeviceError, match=r"^bitstreams/ has no engine of these sizes for "):
        Engine(replace(PARAMS, bands=2), card)

"""Comparisons of 16 lanes are counted alike in each of the ways that processors offer."""

import numpy as np
import pyopencl as cl
import pytest

from hw.opencl.devices import list_devices, open_device
from hw.opencl.lanes import lane_words
from hw.opencl.program import prelude

pytestmark = pytest.mark.opencl

LINES = 4096
#: What a compiler is kept from, so that another way is taken.
WITHOUT = {
    "all it has": (),
    "no AVX-512": ("__AVX512DQ__",),
    "no AVX2": ("__AVX512DQ__", "__AVX2__"),
}
KERNEL = """
__kernel void count(__global const key_t *keys, __global const key_t *at, __global uint *found,
                    __global uint *packed)
{
    size_t i = get_global_id(0);
    key16_t line = LOAD16(key, keys + 32 * i), next = LOAD16(key, keys + 32 * i + 16);
    key16_t hits = line < (key16_t)(at[i]), more = next > (key16_t)(at[i]);
    int16 words = convert_int16(line) < (int16)((int)at[i]);
    uint signs = SIGNS(hits, more);
    found[5 * i] = LANES_SET(hits);
    found[5 * i + 1] = LANES_OF_FIRST(signs);
    found[5 * i + 2] = LANES_OF_SECOND(signs);
    found[5 * i + 3] = LANES_OF_BOTH(signs);
    found[5 * i + 4] = SIGNS_OF_16(words);
    PACK_16(convert_uint16(line), found[5 * i + 4], packed + 16 * i);
}
"""


def counted(key_bits, without, keys, at):
    device = list_devices()[0]
    context = open_device(device)
    words = lane_words(key_bits)
    text = prelude(device, key_bits)
    assert words in text
    hidden = "".join(f"#undef {name}\n" for name in without)
    program = cl.Program(context, text.replace(words, hidden + words) + KERNEL).build()
    queue, flags = cl.CommandQueue(context), cl.mem_flags
    given = [
        cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=array)
        for array in (keys, at)
    ]
    found = np.zeros((len(at), 5), np.uint32)
    packed = np.zeros((len(at), 16), np.uint32)
    into = [cl.Buffer(context, flags.WRITE_ONLY, array.nbytes) for array in (found, packed)]
    cl.Kernel(program, "count")(queue, (len(at),), None, *given, *into)
    cl.enqueue_copy(queue, found, into[0])
    cl.enqueue_copy(queue, packed, into[1])
    return found, packed


@pytest.mark.parametrize("without", WITHOUT.values(), ids=WITHOUT)
@pytest.mark.parametrize("key_bits", [32, 64])
def test_lanes_are_counted(key_bits, without):
    random = np.random.default_rng(key_bits)
    dtype = {32: np.int32, 64: np.int64}[key_bits]
    at = random.integers(-8, 8, LINES).astype(dtype)
    keys = random.integers(-10, 10, (LINES, 2, 16)).astype(dtype)
    ends = np.iinfo(dtype)
    keys[::3, :, ::5], keys[::7, :, 1::4] = ends.min, ends.max

    found, packed = counted(key_bits, without, keys, at)
    hits, more = keys[:, 0] < at[:, None], keys[:, 1] > at[:, None]
    first, second = hits.sum(1), more.sum(1)
    words = keys[:, 0].astype(np.int32)
    below = words < at[:, None].astype(np.int32)
    signs = (below << np.arange(16)).sum(1)
    assert np.array_equal(found, np.stack([first, first, second, first + second, signs], 1))
    for line, chosen, together in zip(words, below, packed, strict=True):
        assert np.array_equal(together[: chosen.sum()], line[chosen].astype(np.uint32))

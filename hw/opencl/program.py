"""Programs for OpenCL devices: C types from hw.spec, and what is odd about a device."""

from collections.abc import Mapping, Sequence
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np

from hw.opencl.building import build
from hw.opencl.devices import Device, DeviceError, open_device
from hw.opencl.lanes import lane_words
from hw.opencl.once import once
from hw.spec.predicates import REGISTER
from hw.spec.tuples import NOT, RECORD, interval_dtype, key_limits

__all__ = [
    "ARRAY", "COLUMN", "COLUMN_LEVELS", "FAN", "LEVELS", "PADDING", "QUESTION", "SIGHTS", "SLABS",
    "TASK_WORDS", "Program", "aggregate_text", "c_structs", "engine_text",
    "open_aggregates", "open_program", "prelude", "read_kernels", "shares_memory",
]

#: Keys under one entry of an index array: one line of the cache at 32 bits.
FAN = 16
#: Keys behind the last line of an array or a level that searches may read.
PADDING = 2 * FAN
#: Most levels of sampled keys above a sorted array of 2**31 keys.
LEVELS = 6
#: Most arguments of a task; see kernels/insert.cl.
TASK_WORDS = 10
#: Most buffers that an engine's memory is made of.
SLABS = 8

#: A sorted array of keys in an engine's memory. `keys`, `rids` and `index` are places in the
#: pool. `base` is the position of the first key among its subwindow's tuples. Level n of the
#: index begins `level[n]` keys behind `index` and holds every FAN**(n+1)-th key; `depth` of them
#: are kept. In paper mode `stride` is the keys between two entries of the one index, and 0 means
#: that the array is an insertion buffer in order of arrival.
ARRAY = np.dtype([
    ("keys", "<u8"), ("rids", "<u8"), ("index", "<u8"), ("count", "<u4"), ("base", "<u4"),
    ("depth", "<u4"), ("stride", "<u4"), ("level", "<u4", (LEVELS,)),
])

#: Most levels of a column's block structure.
COLUMN_LEVELS = 8
#: A column of a subwindow, for aggregates: places of its levels (0 is the values by position), of
#: its prefix sums, and of the flag that an infinity or NaN is among the values; `extremes` says
#: that least and largest are wanted.
COLUMN = np.dtype([
    ("level", "<u8", (COLUMN_LEVELS,)), ("sums", "<u8"), ("special", "<u8"), ("folds", "<u8"),
    ("edges", "<u8"), ("depth", "<u4"), ("extremes", "<u4"),
])

#: What the probes of a launch see of one subwindow; see kernels/sight.cl.
SIGHTS = np.dtype([
    ("place", "<u8"), ("marks", "<u8"), ("edges", "<u8"), ("base", "<u4"), ("rows", "<u4"),
])
#: Some positions of a frontier, and the frontier to be made; see kernels/frontier.cl.
MARK = np.dtype([
    ("every", "<u8"), ("edge", "<u8"), ("every_before", "<u4"), ("edge_before", "<u4"),
])
FRONTIER = np.dtype([
    ("rids", "<u8"), ("marks", "<u8"), ("edges", "<u8"), ("apart", "<u8"), ("sums", "<u8"),
    ("count", "<u4"), ("room", "<u4"), ("every", "<u4", (2,)), ("some", "<u4", (2,)),
])

#: What is asked of a batch of probes where only counts are wanted; see kernels/probe.cl. The first
#: seven are places.
QUESTION = np.dtype([
    ("arrays", "<u8"), ("keys", "<u8"), ("wanted", "<u8"), ("registers", "<u8"),
    ("counts", "<u8"), ("sights", "<u8"), ("efforts", "<u8"), ("subwindows", "<u4"),
    ("explicit", "<u4"), ("bands", "<u4"), ("probes", "<u4"), ("negated", "<u4"), ("unused", "V4"),
])

_FOLDER = Path(__file__).parent / "kernels"


class Program:
    """A built program and the context that it lives in, shared by all engines on a device."""

    def __init__(self, device: Device, context: Any, handle: Any) -> None:
        self.device = device
        self.context = context
        self._handle = handle

    def open_queue(self) -> Any:
        """An in-order queue: each launch sees what those before it wrote, and times are known."""
        import pyopencl as cl

        return cl.CommandQueue(
            self.context, properties=cl.command_queue_properties.PROFILING_ENABLE
        )

    def kernel(self, name: str, scalars: Sequence[type | None]) -> Any:
        """A kernel object of one's own: its arguments are not shared with other engines.

        `scalars` has the numpy type of each argument, None for a buffer.
        """
        import pyopencl as cl

        kernel = cl.Kernel(self._handle, name)
        kernel.set_scalar_arg_dtypes(list(scalars))
        return kernel


@once
def _context(device: Device) -> Any:
    return open_device(device)


@once
def open_program(device: Device, key_bits: int) -> Program:
    """The throughput engine for keys of that width, built once for each device."""
    context = _context(device)
    return Program(device, context, build(device, context, engine_text(device, key_bits)))


@once
def open_aggregates(device: Device, floating: bool) -> Program:
    """The aggregation engine over float64 or int64 values, built when it is first used."""
    if floating and "cl_khr_fp64" not in device.handle.extensions:
        raise DeviceError(
            f"the OpenCL device {device} has no 64-bit floats, which sums of them need: choose "
            "another with --device"
        )
    context = _context(device)
    return Program(device, context, build(device, context, aggregate_text(device, floating)))


def engine_text(device: Device, key_bits: int) -> str:
    """The whole text of the throughput engine."""
    structs = {
        "record_t": RECORD, "register_t": REGISTER, "interval_t": interval_dtype(key_bits),
        "array_t": ARRAY, "sights_t": SIGHTS, "mark_t": MARK, "frontier_t": FRONTIER,
        "question_t": QUESTION,
    }
    text = prelude(device, key_bits) + c_structs(device, structs, _context(device))
    return text + read_kernels((
        "memory.cl", "sight.cl", "frontier.cl", "search.cl", "probe.cl", "insert.cl", "paper.cl",
        "distribute.cl", "collect.cl",
    ))


def aggregate_text(device: Device, floating: bool) -> str:
    """The whole text of the aggregation engine; it never looks at a key."""
    value = "double" if floating else "long"
    text = prelude(device, 32) + ("#define FLOATING\n" if floating else "")
    text += f"typedef {value} value_t;\n"
    structs = {"record_t": RECORD, "array_t": ARRAY, "column_t": COLUMN, "sights_t": SIGHTS,
        "mark_t": MARK}
    text += c_structs(device, structs, _context(device))
    return text + read_kernels(("memory.cl", "sight.cl", "aggregate.cl"))


def read_kernels(names: Sequence[str], folder: Path = _FOLDER) -> str:
    """The kernels' text; a compiler's message names the file and its line."""
    return "".join(f'#line 1 "{name}"\n{(folder / name).read_text()}' for name in names)


def prelude(device: Device, key_bits: int) -> str:
    """Types and constants of hw.spec that are no structs, and the device's own words."""
    smallest, largest = key_limits(key_bits)
    name, suffix = {32: ("int", ""), 64: ("long", "L")}[key_bits]
    lines = [f"typedef {name}{lanes} key{lanes}_t;" for lanes in (2, 4, 8, 16)]
    lines += [
        f"typedef {name} key_t;",
        f"typedef u{name} ukey_t;",
        f"#define KEY_MAX ((key_t){largest}{suffix})",
        f"#define KEY_MIN ((key_t)(-{largest}{suffix} - 1))",
        f"#define NOT {int(NOT)}u",
        f"#define FAN {FAN}u",
        f"#define PADDING {PADDING}u",
        f"#define LEVELS {LEVELS}u",
        f"#define TASK_WORDS {TASK_WORDS}u",
    ]
    assert smallest == -largest - 1
    return "\n".join(lines) + "\n" + _dialect(device) + lane_words(key_bits)


def c_structs(device: Device, dtypes: Mapping[str, np.dtype], context: Any = None) -> str:
    """C declarations of the records; DeviceError where the device lays one out otherwise."""
    from pyopencl.tools import match_dtype_to_c_struct

    text = ""
    for name, dtype in dtypes.items():
        declared = _without_void(dtype)
        found, declaration = match_dtype_to_c_struct(device.handle, name, declared, context)
        if found != declared:
            raise DeviceError(
                f"the OpenCL device {device} lays out {name} in {found.itemsize} bytes where "
                f"{dtype.itemsize} are meant: choose another with --device"
            )
        text += declaration
    return text


def shares_memory(device: Device, context: Any, queue: Any) -> bool:
    """Whether what the device writes to a buffer in host memory is there without a copy.

    Tried, not asked: a device that keeps a shadow of such buffers may still call its memory
    unified.
    """
    import pyopencl as cl

    if device.kind != "cpu":
        return False
    host = np.frombuffer(mmap(-1, 4096), np.uint32)
    flags = cl.mem_flags
    buffer = cl.Buffer(context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=host)
    cl.enqueue_fill_buffer(queue, buffer, np.array(7, np.uint32), 0, host.nbytes)
    queue.finish()
    return bool((host == 7).all())


def _without_void(dtype: np.dtype) -> np.dtype:
    """The same layout with unused bytes as an array of them: C has no void members."""
    assert dtype.names is not None
    fields = []
    for name in dtype.names:
        member = dtype[name]
        fields.append((name, "u1", (member.itemsize,)) if member.kind == "V" and
                      member.subdtype is None else (name, member))
    return np.dtype(fields)


def _dialect(device: Device) -> str:
    """Words for what OpenCL leaves to the compiler: inlining, prefetch, loads of 16 values.

    PoCL calls even small functions, vload16() among them, which costs more than what they do, and
    its prefetch() does nothing; clang's own words reach the machine. Their pointers have no
    address space, and on a CPU all are one.
    """
    lines = ["#define INLINE inline __attribute__((always_inline))"]
    if "portable" in device.platform.lower():
        lines += [
            '#pragma clang diagnostic ignored "-Wpsabi"',
            "typedef key16_t __attribute__((aligned(sizeof(key_t)))) any_key16_t;",
            "typedef uint16 __attribute__((aligned(sizeof(uint)))) any_uint16_t;",
            "#define POPCOUNT(bits) ((uint)__builtin_popcountll(bits))",
            "#define LOAD16(type, from) (*(__global const any_##type##16_t *)(from))",
            "#define STORE16(type, value, into) (*(__global any_##type##16_t *)(into) = (value))",
        ]
    else:
        lines += [
            "#define LOAD16(type, from) vload16(0, from)",
            "#define STORE16(type, value, into) vstore16(value, 0, into)",
            "#define POPCOUNT(bits) ((uint)popcount((ulong)(bits)))",
        ]
    if device.kind == "cpu":
        lines.append(
            # Into the second cache: the first one's few places for what is under way would be full.
            "#define PREFETCH(from) "
            "__builtin_prefetch((__private const void *)(size_t)(from), 0, 2)"
        )
    else:
        lines.append("#define PREFETCH(from) prefetch(from, 1)")
    return "\n".join(lines) + "\n"

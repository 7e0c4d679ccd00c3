"""The FPGA form as one OpenCL program: sizes from JoinParams, records from hw.spec."""

from collections.abc import Iterator
from dataclasses import asdict
from importlib import resources

import numpy as np

from hw.spec.params import JoinParams
from hw.spec.predicates import REGISTER, Bound
from hw.spec.tuples import NOT, RECORD, interval_dtype, tuple_dtype

__all__ = [
    "BLOCK",
    "COUNTERS",
    "ORDERS",
    "PASSING",
    "RESULT",
    "STAGED",
    "STAR",
    "every_kernel",
    "insertion_kernels",
    "probing_kernels",
    "sizes_of",
    "source",
    "storing_kernels",
]

#: Probes that one lane takes before the next lane's turn.
BLOCK = 64
#: Words of a core's row of counters: its turns to store (left, right, tuples that only pass), and
#: the tuples that it has staged.
COUNTERS = 4
PASSING, STAGED = 2, 3
#: Cores that one level of distribution and collection serves.
MOST_CORES = 16
#: How the collection orders results: hw/opencl/fpga/collection.cl.
ORDERS = ("none", "outer", "strict")
#: The run of a star, a word of the result stream without data.
STAR = 0xFFFF_FFFF
#: One word of the result stream: run = band * cores + core.
RESULT = np.dtype([(name, "<u4") for name in ("subwindow", "probe", "run", "start", "end")])

#: Sizes of JoinParams that do not change the program.
_OF_THE_HOST = ("subwindow", "insert_buffer", "lanes", "mode")
_C_TYPES = {"<i4": "int", "<i8": "long", "<u4": "uint", "<u8": "ulong", "|u1": "uchar"}
_PRIVATE = """
typedef struct { uint partition; key_t key; } entry_t;
typedef struct { key_t key; uint sequence; bool empty; } bound_t;
typedef struct { key_t key; uint first, count; bool above, fresh, known, closing; } target_t;
"""


def source(params: JoinParams, depth: int = 64, key_depth: int = 512) -> str:
    """The whole program, ready for an FPGA's compiler; `depth` is of the channels between kernels,
    `key_depth` of those from memory to the probers. Subwindows may have any size.
    """
    if params.cores > MOST_CORES:
        raise ValueError(
            f"cores of the FPGA form must be at most {MOST_CORES}, not {params.cores}: "
            "distribution and collection are one level deep"
        )
    for name, words in (("depth", depth), ("key_depth", key_depth)):
        if words < 16 or words & (words - 1):
            raise ValueError(f"{name} must be a power of two from 16 up, not {words}")
    return "\n".join(_parts(params, depth, key_depth)) + "\n"


def sizes_of(params: JoinParams) -> dict[str, int]:
    """The sizes that make the program what it is."""
    return {name: value for name, value in asdict(params).items() if name not in _OF_THE_HOST}


def storing_kernels(params: JoinParams) -> list[str]:
    """Kernels of one store launch, each after those that feed it."""
    return ["distribute_tuples", *(f"store_{core}" for core in range(params.cores))]


def insertion_kernels(params: JoinParams, core: int) -> list[str]:
    """Kernels of one merge launch of a core, each after those that feed it."""
    mergers = [
        f"{name}_{core}_{merger}"
        for merger in range(params.mergers)
        for name in ("feed_main", "feed_batch", "merge")
    ]
    return [f"split_{core}", *mergers, f"index_partitions_{core}"]


def probing_kernels(params: JoinParams) -> list[str]:
    """Kernels of one probe launch, each after those that feed it."""
    names = ["distribute_probes"]
    for core in range(params.cores):
        names.append(f"bound_{core}")
        for lane in range(params.probers):
            names += [f"{name}_{core}_{lane}" for name in ("partition", "fetch", "probe")]
        names.append(f"punctuate_{core}")
    return [*names, "collect"]


def every_kernel(params: JoinParams) -> tuple[str, ...]:
    """The names of all kernels of the program."""
    merging = (name for core in range(params.cores) for name in insertion_kernels(params, core))
    return (*storing_kernels(params), *merging, *probing_kernels(params))


def _parts(params: JoinParams, depth: int, key_depth: int) -> Iterator[str]:
    yield from _sizes(params, depth, key_depth)
    yield from _types(params.key_bits)
    yield _text("channels.h")
    for name, count in (
        ("CORE", params.cores),
        ("MERGER", params.mergers),
        ("LANE", params.probers),
    ):
        yield f"#define EACH_{name}(DO) " + " ".join(f"DO({unit})" for unit in range(count))
    yield _text("distribution.cl")
    for core in range(params.cores):
        yield f"#define CORE {core}"
        yield from map(_text, ("store.cl", "splitter.cl"))
        yield from _for_each("merger.cl", params.mergers)
        yield from map(_text, ("indexer.cl", "boundary_generator.cl"))
        yield from _for_each("partitioner.cl", params.probers)
        yield from _for_each("prober.cl", params.probers)
        yield _text("punctuator.cl")
        yield "#undef CORE"
    yield _text("collection.cl")


def _for_each(name: str, units: int) -> Iterator[str]:
    for unit in range(units):
        yield f"#define LANE {unit}"
        yield _text(name)
        yield "#undef LANE"


def _sizes(params: JoinParams, depth: int, key_depth: int) -> Iterator[str]:
    words = {
        "CORES": params.cores,
        "MERGERS": params.mergers,
        "LANES": params.probers,
        "BANDS": params.bands,
        "PARTITIONS": params.partitions,
        "BLOCK": BLOCK,
        "DEPTH": depth,
        "KEY_DEPTH": key_depth,
        "COUNTERS": COUNTERS,
        "STAGED": STAGED,
        **{bound.name: bound.value for bound in Bound},
        **{order.upper(): number for number, order in enumerate(ORDERS)},
    }
    yield from (f"#define {name} {value}" for name, value in words.items())
    yield f"#define NOT {int(NOT)}u"
    yield f"#define STAR {STAR}u"


def _types(key_bits: int) -> Iterator[str]:
    word = {32: "int", 64: "long"}[key_bits]
    yield f"typedef {word} key_t;"
    yield f"typedef u{word} ukey_t;"
    yield f"#define KEY_MAX {word.upper()}_MAX"
    yield f"#define KEY_MIN {word.upper()}_MIN"
    yield from _struct("tuple_t", tuple_dtype(key_bits))
    yield from _struct("interval_t", interval_dtype(key_bits))
    yield from _struct("register_t", REGISTER)
    yield from _struct("record_t", RECORD)
    yield from _struct("result_t", RESULT)
    yield _PRIVATE


def _struct(name: str, dtype: np.dtype) -> Iterator[str]:
    """The dtype as a C struct; a compiler that lays it out otherwise refuses the program."""
    fields = []
    for field in dtype.names or ():
        part = dtype[field]
        if part.kind == "V":
            fields.append(f"uchar {field}[{part.itemsize}];")
        else:
            fields.append(f"{_C_TYPES[part.str]} {field};")
    yield f"typedef struct __attribute__((packed)) {{ {' '.join(fields)} }} {name};"
    yield f"typedef char {name}_is_packed[sizeof({name}) == {dtype.itemsize} ? 1 : -1];"


def _text(name: str) -> str:
    """One file, with a line that lets a compiler's message name it."""
    return f'#line 1 "{name}"\n' + (resources.files(__package__) / name).read_text()

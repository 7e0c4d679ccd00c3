"""The records of hw.spec as struct layouts; no width is written elsewhere.

A frame on a stream is any number of tokens with data, then one `end` token without data: an
empty frame is one token. A narrow token has one datum; a wide token has as many lanes as a
memory word, of which the first `count` are data (all of them but in a frame's last data token).
"""

from amaranth.hdl import *
from amaranth.lib import data

from hw.spec import RECORD, JoinParams, interval_dtype, key_dtype, tuple_dtype

__all__ = [
    "layout_of",
    "key_shape",
    "tuple_layout",
    "interval_layout",
    "record_layout",
    "run_layout",
    "word_layout",
    "token",
    "wide_token",
    "row_count",
    "index_entries",
    "main_words",
    "check_geometry",
    "order_of",
    "fields_of",
]


def layout_of(dtype):
    """A numpy dtype as a shape: the same fields at the same bits."""
    if dtype.fields is None:
        bits = dtype.itemsize * 8
        return signed(bits) if dtype.kind == "i" else unsigned(bits)
    return data.StructLayout({name: layout_of(dtype.fields[name][0]) for name in dtype.names})


def key_shape(params: JoinParams):
    """A join key: signed, 32 or 64 bits."""
    return layout_of(key_dtype(params.key_bits))


def tuple_layout(params: JoinParams):
    """A stored tuple: `key` and `rid`."""
    return layout_of(tuple_dtype(params.key_bits))


def interval_layout(params: JoinParams):
    """A closed interval of keys: `lo` and `hi`."""
    return layout_of(interval_dtype(params.key_bits))


def record_layout():
    """A probe's answer: `start` and `end`, the top bit of which is the label `not`."""
    return layout_of(RECORD)


def word_layout(params: JoinParams):
    """A memory word of the main array: `lanes` tuples, the first in the low bits."""
    return data.ArrayLayout(tuple_layout(params), params.lanes)


def token(shape):
    """A datum or the end of a frame: `data`, `end`."""
    return data.StructLayout({"data": shape, "end": 1})


def wide_token(shape, lanes):
    """Up to `lanes` data or the end of a frame: `data`, `count`, `end` (with a count of 0)."""
    return data.StructLayout(
        {"data": data.ArrayLayout(shape, lanes), "count": range(lanes + 1), "end": 1}
    )


def row_count(params: JoinParams):
    """A number of tuples of a subwindow, from none to all; a position is one too."""
    return range(params.subwindow + 1)


def index_entries(params: JoinParams):
    """Entries of the index array of a full subwindow."""
    return -(-params.subwindow // params.partition_rows)


def run_layout(params: JoinParams):
    """A record before it has its label: positions `start` to `end` of the main array."""
    rows = row_count(params)
    return data.StructLayout({"start": rows, "end": rows})


def main_words(params: JoinParams):
    """Memory words of the main array of a full subwindow."""
    return params.subwindow // params.lanes


def check_geometry(params: JoinParams):
    """Gateware addresses by bits: refuse sizes that are not powers of two or do not nest."""
    if params.subwindow & (params.subwindow - 1):
        raise ValueError(f"subwindow must be a power of two in gateware, not {params.subwindow}")
    if params.partition_rows < params.lanes:
        raise ValueError(
            f"a partition of {params.partition_rows} tuples is shorter than a memory word of "
            f"{params.lanes}"
        )


def order_of(key, end=None):
    """An unsigned number in the order of a signed key; with `end` above every key."""
    bits = Value.cast(key)
    parts = [bits[:-1], ~bits[-1]]
    return Cat(*parts) if end is None else Cat(*parts, end)


def fields_of(layout):
    """Bits of the whole, and [offset, width] of each field; of an array's elements too."""
    fields = {}
    for key, field in layout:
        if isinstance(field.shape, data.Layout):
            for name, (offset, width) in fields_of(field.shape)["fields"].items():
                fields[f"{key}.{name}"] = [field.offset + offset, width]
        else:
            fields[str(key)] = [field.offset, field.width]
    return {"bits": layout.size, "fields": fields}

"""What numba does not find by itself: elements of an array compared or written many at a time."""

from typing import Any

from llvmlite import ir
from numba import extending, types

__all__ = ["LANES", "below", "inside", "written_byte"]

#: Elements that are compared at once.
LANES = 16

#: Its own type says nothing of what is made of it.
_intrinsic: Any = extending.intrinsic


@_intrinsic
def inside(typingctx: Any, array: Any, place: Any, low: Any, high: Any) -> Any:
    """A uint64 with a bit for each of array[place : place + LANES] that is in [low, high].

    The array must have that many elements from `place` on.
    """
    kind = array.dtype
    signature = types.uint64(array, types.uint64, kind, kind)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        values, compare = _lanes(context, builder, sig, arguments)
        low, high = arguments[2:]
        return _bits(
            builder, builder.and_(compare(">=", values, low), compare("<=", values, high))
        )

    return signature, generate


@_intrinsic
def below(typingctx: Any, array: Any, place: Any, bound: Any) -> Any:
    """The same for elements that are less than `bound`."""
    signature = types.uint64(array, types.uint64, array.dtype)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        values, compare = _lanes(context, builder, sig, arguments)
        return _bits(builder, compare("<", values, arguments[2]))

    return signature, generate


@_intrinsic
def written_byte(
    typingctx: Any, array: Any, place: Any, table: Any, row: Any, base: Any
) -> Any:
    """array[place : place + 8] = base + table[row : row + 8], of two arrays of one type; 0.

    Both arrays must have that many elements from there on.
    """
    signature = types.int64(array, types.uint64, table, types.uint64, array.dtype)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        kind = sig.args[0].dtype
        vector = ir.VectorType(context.get_data_type(kind), 8)
        into, source = (
            builder.bitcast(
                builder.gep(
                    context.make_array(sig.args[n])(context, builder, arguments[n]).data,
                    [arguments[n + 1]],
                ),
                vector.as_pointer(),
            )
            for n in (0, 2)
        )
        align = kind.bitwidth // 8
        values = builder.load(source, align=align)
        moved = builder.add(values, _everywhere(builder, vector, arguments[4]))
        builder.store(moved, into, align=align)
        return context.get_constant(types.int64, 0)

    return signature, generate


def _lanes(context: Any, builder: Any, sig: Any, arguments: Any) -> tuple[Any, Any]:
    """The elements as one vector, and what compares it with a single value."""
    found = context.make_array(sig.args[0])(context, builder, arguments[0])
    kind = sig.args[0].dtype
    vector = ir.VectorType(context.get_data_type(kind), LANES)
    address = builder.bitcast(builder.gep(found.data, [arguments[1]]), vector.as_pointer())
    compared = builder.icmp_signed if kind.signed else builder.icmp_unsigned

    def compare(how: str, values: Any, bound: Any) -> Any:
        return compared(how, values, _everywhere(builder, vector, bound))

    return builder.load(address, align=kind.bitwidth // 8), compare


def _bits(builder: Any, found: Any) -> Any:
    return builder.zext(builder.bitcast(found, ir.IntType(LANES)), ir.IntType(64))


def _everywhere(builder: Any, vector: Any, value: Any) -> Any:
    """A vector that has the value in every lane."""
    first = builder.insert_element(
        ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0)
    )
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), lanes)

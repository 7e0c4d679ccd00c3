"""What numba does not find by itself: elements of an array compared or written many at a time."""

from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

__all__ = [
    "LANES", "below", "copied", "filled", "inside", "merged", "ones", "packed", "seen",
    "written_byte",
]

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
def seen(typingctx: Any, array: Any, place: Any, first: Any, rows: Any) -> Any:
    """The same for unsigned elements of which `first` can be taken away to less than `rows`."""
    signature = types.uint64(array, types.uint64, array.dtype, array.dtype)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        values, compare = _lanes(context, builder, sig, arguments)
        moved = builder.sub(values, _everywhere(builder, values.type, arguments[2]))
        return _bits(builder, compare("<", moved, arguments[3]))

    return signature, generate


@_intrinsic
def ones(typingctx: Any, bits: Any) -> Any:
    """How many bits of a uint64 are set."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@_intrinsic
def filled(typingctx: Any, array: Any, place: Any, value: Any) -> Any:
    """array[place : place + LANES] = value; 0. The array must have that many from there on."""
    signature = types.int64(array, types.uint64, array.dtype)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        address, align = _address(context, builder, sig, arguments, 0)
        values = _everywhere(builder, address.type.pointee, arguments[2])
        builder.store(values, address, align=align)
        return context.get_constant(types.int64, 0)

    return signature, generate


@_intrinsic
def copied(typingctx: Any, array: Any, place: Any, source: Any, start: Any) -> Any:
    """array[place : place + LANES] = source[start : start + LANES], of two arrays of one type; 0.

    Both arrays must have that many elements from there on.
    """
    signature = types.int64(array, types.uint64, source, types.uint64)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        into, align = _address(context, builder, sig, arguments, 0)
        taken, _ = _address(context, builder, sig, arguments, 2)
        builder.store(builder.load(taken, align=align), into, align=align)
        return context.get_constant(types.int64, 0)

    return signature, generate


@_intrinsic
def packed(
    typingctx: Any, array: Any, place: Any, source: Any, start: Any, bits: Any
) -> Any:
    """The same of those elements alone whose bit is set, side by side; behind them is anything."""
    signature = types.int64(array, types.uint64, source, types.uint64, types.uint64)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        # As many at a time as one register of any machine holds.
        lanes = LANES // 2 if array.dtype.bitwidth == 64 else LANES
        word, part = ir.IntType(64), ir.IntType(lanes)
        place, start, bits = arguments[1], arguments[3], arguments[4]
        for first in range(0, LANES, lanes):
            at = [arguments[0], place, arguments[2], builder.add(start, word(first))]
            chosen = builder.trunc(builder.lshr(bits, word(first)), part)
            _pack(context, builder, sig, at, lanes, chosen)
            place = builder.add(place, builder.zext(builder.ctpop(chosen), word))
        return context.get_constant(types.int64, 0)

    return signature, generate


def _pack(
    context: Any, builder: Any, sig: Any, arguments: Any, lanes: int, chosen: Any
) -> None:
    """Compress so many elements and write them as a vector: to store what is compressed straight
    away is slow in some machines.
    """
    into, align = _address(context, builder, sig, arguments, 0, lanes)
    taken, _ = _address(context, builder, sig, arguments, 2, lanes)
    vector, mask = into.type.pointee, ir.VectorType(ir.IntType(1), lanes)
    compress = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector, mask, vector]),
        f"llvm.experimental.vector.compress.v{lanes}i{8 * align}",
    )
    values = builder.load(taken, align=align)
    nothing = ir.Constant(vector, ir.Undefined)
    values = builder.call(compress, [values, builder.bitcast(chosen, mask), nothing])
    builder.store(values, into, align=align)


@_intrinsic
def merged(
    typingctx: Any, array: Any, place: Any, one: Any, first: Any, other: Any, second: Any,
    bits: Any,
) -> Any:
    """array[place : place + LANES] = the next elements of one[first :] where a bit is set, of
    other[second :] where it is not, of three arrays of one type; 0.
    """
    signature = types.int64(
        array, types.uint64, one, types.uint64, other, types.uint64, types.uint64
    )

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        into, align = _address(context, builder, sig, arguments, 0)
        vector, mask = into.type.pointee, ir.VectorType(ir.IntType(1), LANES)
        chosen = builder.bitcast(builder.trunc(arguments[6], ir.IntType(LANES)), mask)
        expand = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector.element.as_pointer(), mask, vector]),
            f"llvm.masked.expandload.v{LANES}i{8 * align}",
        )
        values = ir.Constant(vector, ir.Undefined)
        for number, wanted in ((2, chosen), (4, builder.not_(chosen))):
            found = context.make_array(sig.args[number])(context, builder, arguments[number])
            start = builder.gep(found.data, [arguments[number + 1]])
            values = builder.call(expand, [start, wanted, values])
        builder.store(values, into, align=align)
        return context.get_constant(types.int64, 0)

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
    address, align = _address(context, builder, sig, arguments, 0)
    compared = builder.icmp_signed if sig.args[0].dtype.signed else builder.icmp_unsigned

    def compare(how: str, values: Any, bound: Any) -> Any:
        return compared(how, values, _everywhere(builder, values.type, bound))

    return builder.load(address, align=align), compare


def _address(
    context: Any, builder: Any, sig: Any, arguments: Any, number: int, lanes: int = LANES
) -> tuple[Any, int]:
    """Where so many elements of the array begin from the place on that is the next argument."""
    found = context.make_array(sig.args[number])(context, builder, arguments[number])
    kind = sig.args[number].dtype
    vector = ir.VectorType(context.get_data_type(kind), lanes)
    first = builder.gep(found.data, [arguments[number + 1]])
    return builder.bitcast(first, vector.as_pointer()), kind.bitwidth // 8


def _bits(builder: Any, found: Any) -> Any:
    return builder.zext(builder.bitcast(found, ir.IntType(LANES)), ir.IntType(64))


def _everywhere(builder: Any, vector: Any, value: Any) -> Any:
    """A vector that has the value in every lane."""
    first = builder.insert_element(
        ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0)
    )
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), lanes)

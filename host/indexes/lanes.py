"""What numba does not find by itself: elements of an array compared sixteen at a time."""

from typing import Any

from llvmlite import ir
from numba import extending, types

__all__ = ["LANES", "inside"]

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
        found = context.make_array(sig.args[0])(context, builder, arguments[0])
        vector = ir.VectorType(context.get_data_type(kind), LANES)
        address = builder.bitcast(
            builder.gep(found.data, [arguments[1]]), vector.as_pointer()
        )
        values = builder.load(address, align=kind.bitwidth // 8)
        compare = builder.icmp_signed if kind.signed else builder.icmp_unsigned
        bounds = [_everywhere(builder, vector, bound) for bound in arguments[2:]]
        both = builder.and_(compare(">=", values, bounds[0]), compare("<=", values, bounds[1]))
        return builder.zext(builder.bitcast(both, ir.IntType(LANES)), ir.IntType(64))

    return signature, generate


def _everywhere(builder: Any, vector: Any, value: Any) -> Any:
    """A vector that has the value in every lane."""
    first = builder.insert_element(
        ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0)
    )
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), lanes)

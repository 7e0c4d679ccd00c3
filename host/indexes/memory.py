"""What numba lacks: overlapping moves of array elements in compiled code."""

from typing import Any

from llvmlite import ir
from numba import extending, types

__all__ = ["move"]

#: Its own type says nothing of what is made of it.
_intrinsic: Any = extending.intrinsic


@_intrinsic
def move(typingctx: Any, array: Any, into: Any, begin: Any, count: Any) -> Any:
    """array[into : into + count] = array[begin : begin + count], also where they overlap."""
    signature = types.void(array, types.int64, types.int64, types.int64)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        found = context.make_array(sig.args[0])(context, builder, arguments[0])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(64)
        target, source = (
            builder.bitcast(builder.gep(found.data, [place]), byte) for place in arguments[1:3]
        )
        bits = context.get_abi_sizeof(context.get_data_type(sig.args[0].dtype))
        kind = ir.FunctionType(ir.VoidType(), [byte, byte, word, ir.IntType(1)])
        memmove = builder.module.declare_intrinsic("llvm.memmove", (byte, byte, word), kind)
        size = builder.mul(arguments[3], word(bits))
        builder.call(memmove, [target, source, size, ir.IntType(1)(0)])
        return context.get_dummy_value()

    return signature, generate

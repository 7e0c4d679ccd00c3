"""Bits of words, which numba has no words for."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["first_one", "ones"]


def _ones(typingctx: Any, word: Any) -> Any:
    """How many bits of a uint64 are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _first_one(typingctx: Any, word: Any) -> Any:
    """Place of the lowest bit of a uint64 that is set; of 0, 64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


# Compiled code calls them without the first argument.
ones: Any = intrinsic(_ones)
first_one: Any = intrinsic(_first_one)

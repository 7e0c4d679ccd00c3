"""What threads in compiled code need of each other, and numba lacks: words that are shared.

All work on an element of a contiguous int64 array. A lock is an element that is 0 while free.
"""

from typing import Any

from numba import extending, types

from host.indexes.compiling import compiled

__all__ = ["fetch_add", "load", "lock", "store", "try_lock", "unlock", "wait"]

#: Its own type says nothing of what is made of it.
_intrinsic: Any = extending.intrinsic
#: Looks at a lock before its thread gives up the processor.
_SPINS = 64
_sched_yield = types.ExternalFunction("sched_yield", types.int32())


def _place(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    """The address of array[place]."""
    found = context.make_array(sig.args[0])(context, builder, arguments[0])
    return builder.gep(found.data, [arguments[1]])


@_intrinsic
def fetch_add(typingctx: Any, array: Any, place: Any, more: Any) -> Any:
    """Add to array[place]; what it was."""
    signature = types.int64(array, types.int64, types.int64)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        address = _place(context, builder, sig, arguments)
        return builder.atomic_rmw("add", address, arguments[2], "seq_cst")

    return signature, generate


@_intrinsic
def _exchange(typingctx: Any, array: Any, place: Any, value: Any) -> Any:
    """Put a value into array[place]; what it was."""
    signature = types.int64(array, types.int64, types.int64)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        address = _place(context, builder, sig, arguments)
        return builder.atomic_rmw("xchg", address, arguments[2], "seq_cst")

    return signature, generate


@_intrinsic
def load(typingctx: Any, array: Any, place: Any) -> Any:
    """array[place], and with it everything that was written before it was stored."""
    signature = types.int64(array, types.int64)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return builder.load_atomic(_place(context, builder, sig, arguments), "acquire", 8)

    return signature, generate


@_intrinsic
def store(typingctx: Any, array: Any, place: Any, value: Any) -> Any:
    """Put a value into array[place] after everything that was written before."""
    signature = types.void(array, types.int64, types.int64)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        address = _place(context, builder, sig, arguments)
        builder.store_atomic(arguments[2], address, "release", 8)
        return context.get_dummy_value()

    return signature, generate


@compiled
def try_lock(locks, place):  # type: ignore[no-untyped-def]
    """Test and set: whether the lock is this thread's now."""
    return _exchange(locks, place, 1) == 0


@compiled
def lock(locks, place):  # type: ignore[no-untyped-def]
    """Wait for a lock; a waiting thread leaves the processor to the one that holds it."""
    spins = 0
    while _exchange(locks, place, 1) != 0:
        while load(locks, place) != 0:
            spins += 1
            if spins % _SPINS == 0:
                _sched_yield()


@compiled
def wait():  # type: ignore[no-untyped-def]
    """Leave the processor to another thread for a moment."""
    _sched_yield()


@compiled
def unlock(locks, place):  # type: ignore[no-untyped-def]
    store(locks, place, 0)

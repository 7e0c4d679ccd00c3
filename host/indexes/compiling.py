"""How the structures are compiled: without the interpreter's lock, and without counting references.

A structure is a named tuple of arrays that its owner keeps alive. Counting references to every
array at every call would cost more than the work itself, and threads would wait for each other's
counts. So compiled code allocates nothing: what it fills, it is given.
"""

from typing import Any

from numba import njit

__all__ = ["compiled"]

compiled: Any = njit(cache=True, nogil=True, _nrt=False)  # type: ignore[call-overload]

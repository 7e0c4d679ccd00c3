"""What is made once for a process, whichever of its threads asks first."""

from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Generic, ParamSpec, TypeVar

__all__ = ["once"]

_Asked = ParamSpec("_Asked")
_Made = TypeVar("_Made")

# One for all: what is made may ask for other things in its turn, in whatever order.
_LOCK = RLock()


class once(Generic[_Asked, _Made]):
    """functools.cache that does not let two threads that ask at once both make the thing.

    Of two contexts on a device each would be in somebody's hands, and what was made in the one
    does not run in the other.
    """

    def __init__(self, make: Callable[_Asked, _Made]) -> None:
        self.__doc__ = make.__doc__
        made = cache(make)
        self._ask: Callable[_Asked, _Made] = made
        self._forget = made.cache_clear

    def __call__(self, *args: _Asked.args, **kwargs: _Asked.kwargs) -> _Made:
        with _LOCK:
            return self._ask(*args, **kwargs)

    def cache_clear(self) -> None:
        """Forget what was made."""
        with _LOCK:
            self._forget()

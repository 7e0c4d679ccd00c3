"""Which engine a join runs on: by name, or the best that is here."""

from dataclasses import dataclass

from host.backend import Backend
from host.backends.numpy_backend import NumpyBackend
from host.errors import BackendUnavailable
from host.options import JoinOptions
from hw.spec.params import JoinParams

__all__ = ["BackendOpener", "backend_opener"]


@dataclass(frozen=True)
class BackendOpener:
    """Opens one engine for each worker that calls it."""

    name: str
    params: JoinParams
    device: str | None

    def __call__(self) -> Backend:
        return NumpyBackend(self.params)


def backend_opener(options: JoinOptions, key_bits: int) -> BackendOpener:
    """The opener of the engine that the options name; 'auto' is numpy in this version."""
    name = "numpy" if options.backend == "auto" else options.backend
    if name != "numpy":
        raise BackendUnavailable(f"backend {name!r} is not in this version: use numpy")
    if options.device is not None:
        raise BackendUnavailable(f"backend numpy has no devices: leave out {options.device!r}")
    return BackendOpener(name, JoinParams(key_bits=key_bits), options.device)

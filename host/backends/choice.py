"""Which engine a join runs on: by name, or the best that is here."""

from collections.abc import Callable
from dataclasses import dataclass

from host.backend import Backend
from host.condition import JoinCondition, compile_condition
from host.errors import BackendUnavailable, OptionError
from host.options import JoinOptions
from hw.spec.params import JoinParams

__all__ = ["BackendOpener", "backend_opener", "condition_of"]


def _open_numpy(params: JoinParams, device: str | None) -> Backend:
    from host.backends.numpy_backend import NumpyBackend

    return NumpyBackend(params)


def _open_opencl(params: JoinParams, device: str | None) -> Backend:
    """The throughput form, or on a device with channels the FPGA form."""
    from host.backends.device_errors import device_errors
    from host.backends.opencl_backend import OpenCLBackend
    from host.backends.opencl_fpga_backend import FpgaFormBackend
    from hw.opencl.devices import choose
    from hw.opencl.fpga.channel_device import has_channels

    with device_errors():
        chosen = choose(device)
    form = FpgaFormBackend if has_channels(chosen) else OpenCLBackend
    return form(params, str(chosen.number))


def _open_rtl(params: JoinParams, device: str | None) -> Backend:
    """One simulated core after another as they fill, or with a device like '4 cores' an engine."""
    if device is None:
        from host.backends.rtl_backend import RtlBackend

        return RtlBackend(params)
    from host.backends.byte_engine import EngineBackend
    from host.backends.simulated_engine import SimulatedEngine

    count, _, word = device.partition(" ")
    if word not in ("core", "cores") or not count.isdecimal():
        raise BackendUnavailable(f"device of backend rtl must be like '4 cores', not {device!r}")
    return EngineBackend(SimulatedEngine(int(count), params.key_bits))


def _open_board(params: JoinParams, device: str | None) -> Backend:
    from host.backends.board_backend import BoardBackend

    return BoardBackend(params, device)


#: How each engine of this version is opened; what it stands on is imported only then.
_OPENERS: dict[str, Callable[[JoinParams, str | None], Backend]] = {
    "numpy": _open_numpy,
    "opencl": _open_opencl,
    "rtl": _open_rtl,
    "board": _open_board,
}
_WITH_DEVICES = ("opencl", "rtl", "board")
_WITH_PARAMS = ("opencl",)
#: What `auto` stands for: OpenCL, which runs on any processor.
_DEFAULT = "opencl"


@dataclass(frozen=True)
class BackendOpener:
    """Opens one engine for each worker that calls it.

    index  the structure of its subwindows, where it is one of host.indexes
    batch  tuples that a batch has at most, where a chooser finds the structure
    """

    name: str
    params: JoinParams
    device: str | None
    index: str | None = None
    batch: int | None = None

    def __call__(self) -> Backend:
        if self.index == "po":
            from host.backends.po_backend import PoBackend

            return PoBackend(self.params)
        if self.index is not None:
            from host.backends.index_backend import IndexBackend

            return IndexBackend(self.params, self.index)
        engine = _OPENERS[self.name](self.params, self.device)
        if self.batch is None:
            return engine
        from host.backends.auto_backend import AutoBackend
        from host.backends.index_backend import IndexBackend

        return AutoBackend(engine, IndexBackend(self.params, "bisort"), self.batch)


def condition_of(options: JoinOptions) -> JoinCondition:
    """The condition, compiled for the engine that the options name.

    Two predicates are searched at once by SPO-Join, which runs in host memory; an engine that is
    named searches the best of them and checks the other.
    """
    condition = compile_condition(options.on, options.left, options.right)
    if options.index == "po" and condition.second is None:
        raise OptionError(
            "index 'po' searches two predicates at once, and the condition has no second one "
            "that can be searched: leave it out"
        )
    if options.index == "hash" and not _is_equality(condition):
        raise OptionError(
            "index 'hash' finds equal keys alone, and the condition searches more: use 'auto'"
        )
    free = options.index == "auto" and options.backend in ("auto", "numpy")
    # A device, or sizes of an engine, name that engine.
    free = free and options.device is None and options.params is None
    wanted = options.index == "po" or free
    return condition.searching_both() if wanted and condition.second else condition


def _is_equality(condition: JoinCondition) -> bool:
    """Whether every interval that is searched is one key."""
    predicate = condition.predicate
    return predicate is not None and all(
        band.lo is not None and band.lo == band.hi for band in predicate.bands
    )


def backend_opener(options: JoinOptions, key_bits: int, both: bool = False) -> BackendOpener:
    """The opener of the engine that the options name; `both` predicates are searched if asked."""
    index = None if options.index in ("auto", "bisort") else options.index
    if both:
        index = "po"
    default = _DEFAULT if index is None else "numpy"
    name = default if options.backend == "auto" else options.backend
    if name not in _OPENERS:
        raise BackendUnavailable(
            f"backend {name!r} is not in this version: use {', '.join(_OPENERS)}"
        )
    if options.device is not None and name not in _WITH_DEVICES:
        raise BackendUnavailable(f"backend {name} has no devices: leave out {options.device!r}")
    if options.params is not None and name not in _WITH_PARAMS:
        raise BackendUnavailable(
            f"the sizes of backend {name} are its own: leave out {options.params!r}"
        )
    # An engine that is named by itself keeps all subwindows, if it is not the host's own.
    chosen = options.index == "auto" and options.backend in ("auto", "numpy") and not both
    batch = options.batch if chosen and options.params is None and not options.device else None
    return BackendOpener(name, options.engine_params(key_bits), options.device, index, batch)

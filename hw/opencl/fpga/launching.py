"""Kernels that run at once, and bounded waits for them."""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, NoReturn

import numpy as np
import pyopencl as cl

from hw.opencl.building import build
from hw.opencl.devices import open_device
from hw.opencl.fpga.channel_device import ChannelDevice, DeviceStuck
from hw.opencl.once import once

__all__ = ["Loaded", "load"]


@dataclass
class Loaded:
    """A program on its device. All engines of one program share its channels: they take turns."""

    where: ChannelDevice
    context: cl.Context
    kernels: dict[str, cl.Kernel]
    queues: dict[str, cl.CommandQueue]
    lock: Lock
    broken: str = ""

    def launch(
        self, names: Sequence[str], arguments: Mapping[str, tuple[Any, ...]], timeout_s: float
    ) -> None:
        """Run kernels together and wait for all; `names` has each after those that feed it."""
        with self.lock:
            if self.broken:
                raise DeviceStuck(self.broken)
            events: list[cl.Event] = []
            for name in names:
                kernel, queue = self.kernels[name], self.queues[name]
                kernel.set_args(
                    *(np.uint32(a) if isinstance(a, int) else a for a in arguments[name])
                )
                after = events[-1:] if self.where.staged else None
                events.append(
                    cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,), wait_for=after)
                )
                queue.flush()
            self._await(names, events, timeout_s)

    def _await(self, names: Sequence[str], events: list[cl.Event], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        pause_s = 0.0
        for name, event in zip(names, events, strict=True):
            while (status := event.command_execution_status) > 0:
                if time.monotonic() > deadline:
                    self._give_up(f"kernel {name} did not end in {timeout_s:g} s")
                time.sleep(pause_s)
                pause_s = min(pause_s + 1e-5, 1e-3)
            if status < 0:
                self._give_up(f"kernel {name} failed with status {status}")

    def _give_up(self, why: str) -> NoReturn:
        # Nothing can be said of what is left in the channels.
        self.broken = why
        raise DeviceStuck(why)


@once
def load(where: ChannelDevice, text: str, names: tuple[str, ...]) -> Loaded:
    """The program on its device, and its kernels of those names; built or loaded once."""
    context = open_device(where.device)
    with warnings.catch_warnings():
        # The emulator lists every kernel that it did not vectorise.
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program = build(where.device, context, text, where.options, compiles=where.compiles)
    # Kernels that talk to each other run at once: each has a queue of its own.
    return Loaded(
        where,
        context,
        {name: cl.Kernel(program, name) for name in names},
        {name: cl.CommandQueue(context) for name in names},
        Lock(),
    )

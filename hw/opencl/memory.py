"""An engine's memory on a device: a few large buffers, and places in them."""

import mmap
import time
from bisect import insort
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hw.opencl.devices import Device, DeviceError
from hw.opencl.program import SLABS, shares_memory

__all__ = ["HostArray", "Pool"]

_UNIT = 256  # bytes; a multiple of every vector and cache line
_FIRST_SLAB = 1 << 26
_BEHIND = 256  # bytes behind a slab: kernels read whole lines of the last array, too


class Pool:
    """Memory that grows by buffers of doubling size, up to eight; kernels take them all.

    A place is one number: the buffer in its top byte, a byte offset below. On a device that shares
    memory with the host, buffers lie in host memory that is only filled as it is used, and `view`
    looks at it without a copy.
    """

    def __init__(
        self, device: Device, context: Any, queue: Any, shared: bool | None = None
    ) -> None:
        self.device = device
        self.shared = shares_memory(device, context, queue) if shared is None else shared
        self.queue = queue
        self._context = context
        self._hosts: list[np.ndarray] = []
        self._free: list[list[tuple[int, int]]] = []  # of each slab: (offset, size), ascending
        self._returned: list[tuple[int, int]] = []  # lent places that came back
        self.slabs: list[Any] = []
        self._sizes: list[int] = []
        self._kept: list[tuple[int, int]] | None = None
        self._unread: list[tuple[int, int]] = []  # to be taken back once all is done
        self._left: float | None = None  # when the host went on with something else
        self.beside_s = 0.0  # seconds that queued work took after that
        self._last: Any = None  # event of what was queued last
        #: With how many slabs and what else each kernel was launched last: it keeps arguments.
        self._set: dict[Any, tuple[int, tuple[int, ...]]] = {}
        self._add_slab(_FIRST_SLAB)

    @property
    def arguments(self) -> list[Any]:
        """The buffers as a kernel's first arguments; what is not there yet is never read."""
        return self.slabs + self.slabs[:1] * (SLABS - len(self.slabs))

    def lend(self, dtype: Any, count: int) -> tuple[int, np.ndarray]:
        """A place for `count` entries and the array of them, until the array's last view is gone.

        Where memory is shared the array is that place; elsewhere `collect_lent` fills it.
        """
        dtype = np.dtype(dtype)
        size = count * dtype.itemsize
        place = self.allocate(max(1, size))
        memory = self.view(place, np.uint8, size) if self.shared else np.empty(size, np.uint8)
        lease = _Lease(memory, self._returned, (place, max(1, size)))
        return place, np.asarray(lease).view(dtype)

    def collect_lent(self, place: int, array: np.ndarray) -> None:
        """Bring what a kernel wrote to a lent place into its array."""
        if not self.shared and array.size:
            array[:] = self.view(place, array.dtype, array.size)

    def allocate(self, size: int) -> int:
        """The place of `size` bytes, not cleared; DeviceError where the device has no room."""
        size = -(-size // _UNIT) * _UNIT
        while self._returned:
            self.free(*self._returned.pop())
        for slab, holes in enumerate(self._free):
            for number, (offset, room) in enumerate(holes):
                if room >= size:
                    holes[number : number + 1] = (
                        [(offset + size, room - size)] if room > size else []
                    )
                    return slab << 56 | offset
        if self._unread and self._kept is None:
            self.finish()
        else:
            self._add_slab(size)
        return self.allocate(size)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """What is freed in here is taken back by the next `finish`: kernels may still read it."""
        self._kept = self._unread
        try:
            yield
        finally:
            self._kept = None

    def free(self, place: int, size: int) -> None:
        """Take back what `allocate(size)` gave."""
        if self._kept is not None:
            self._kept.append((place, size))
            return
        size = -(-size // _UNIT) * _UNIT
        slab, offset = place >> 56, place & ((1 << 56) - 1)
        holes = self._free[slab]
        insort(holes, (offset, size))
        joined: list[tuple[int, int]] = []
        for start, room in holes:
            if joined and sum(joined[-1]) == start:
                joined[-1] = (joined[-1][0], joined[-1][1] + room)
            else:
                joined.append((start, room))
        self._free[slab] = joined

    def view(self, place: int, dtype: Any, count: int) -> np.ndarray:
        """What lies at a place: the memory itself where it is shared, else a copy of it."""
        slab, offset = place >> 56, place & ((1 << 56) - 1)
        dtype = np.dtype(dtype)
        if self.shared:
            return self._hosts[slab][offset : offset + count * dtype.itemsize].view(dtype)
        import pyopencl as cl

        copy = np.empty(count, dtype)
        if count:
            cl.enqueue_copy(self.queue, copy, self.slabs[slab], src_offset=offset)
        return copy

    def fill(self, place: int, data: np.ndarray) -> None:
        """Copy an array to a place that no kernel is using."""
        if self.shared:
            self.view(place, data.dtype, len(data))[:] = data
        else:
            self.write(place, data)

    def write(self, place: int, data: np.ndarray) -> None:
        """Copy an array to a place of memory that is not shared."""
        import pyopencl as cl

        slab, offset = place >> 56, place & ((1 << 56) - 1)
        if data.nbytes:
            contiguous = np.ascontiguousarray(data)
            cl.enqueue_copy(self.queue, self.slabs[slab], contiguous, dst_offset=offset)

    def launch(self, kernel: Any, items: tuple[int, ...], *arguments: int) -> None:
        """Queue a kernel that takes the pool and then those arguments; one item to a group.

        Coarse items, no groups: each is a piece of work for a whole compute unit.
        """
        import pyopencl as cl

        self._come_back()
        try:
            if self._set.get(kernel) != (len(self.slabs), arguments):
                kernel.set_args(*self.arguments, *arguments)
                self._set[kernel] = (len(self.slabs), arguments)
            self._last = cl.enqueue_nd_range_kernel(self.queue, kernel, items, (1,) * len(items))
        except cl.Error as error:
            raise self._failure(error) from error

    def finish(self) -> None:
        """Wait until all that was queued is done."""
        import pyopencl as cl

        if self._last is None:
            return
        self._come_back()
        try:
            # The queue is in order. To wait for the last of it wakes up sooner than to finish it.
            self._last.wait()
        except cl.Error as error:
            raise self._failure(error) from error
        self._last = None
        if self._kept is None:
            while self._unread:
                self.free(*self._unread.pop())

    def leave(self) -> None:
        """Go on without waiting for what is queued; the next launch or `finish` comes back."""
        self._left = time.perf_counter()

    def _come_back(self) -> None:
        import pyopencl as cl

        if self._left is None or self._last is None:
            return
        away_s, self._left = time.perf_counter() - self._left, None
        event = self._last
        if event.command_execution_status == cl.command_execution_status.COMPLETE:
            away_s = min(away_s, 1e-9 * (event.profile.end - event.profile.queued))
        self.beside_s += away_s

    def _failure(self, error: Exception) -> DeviceError:
        return DeviceError(
            f"the OpenCL device {self.device} fails ({error}): choose another with --device"
        )

    def close(self) -> None:
        """Release the buffers."""
        for slab in self.slabs:
            slab.release()
        self.slabs, self._hosts, self._free, self._returned = [], [], [], []

    def _add_slab(self, size: int) -> None:
        import pyopencl as cl

        most = (self.device.handle.max_mem_alloc_size - _BEHIND) // _UNIT * _UNIT
        wanted = max(size, min(most, self._sizes[-1] * 2 if self._sizes else _FIRST_SLAB))
        flags = cl.mem_flags
        try:
            if wanted > most or len(self.slabs) == SLABS:
                raise cl.MemoryError("clCreateBuffer", cl.status_code.INVALID_BUFFER_SIZE)
            if self.shared:
                host = _pages(wanted + _BEHIND)
                buffer = cl.Buffer(
                    self._context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=host
                )
            else:
                host = np.empty(0, np.uint8)
                buffer = cl.Buffer(self._context, flags.READ_WRITE, wanted + _BEHIND)
        except (cl.Error, MemoryError, OSError) as error:
            held = sum(self._sizes) >> 20
            raise DeviceError(
                f"the OpenCL device {self.device} has no room for {size >> 20} MiB beside the "
                f"{held} MiB in use: use a smaller window, smaller subwindows or more workers"
            ) from error
        self.slabs.append(buffer)
        self._hosts.append(host)
        self._sizes.append(wanted)
        self._free.append([(0, wanted)])


class _Lease:
    """Memory that an array stands on; numpy keeps it until the array's last view is gone."""

    def __init__(
        self, memory: np.ndarray, returned: list[tuple[int, int]], lent: tuple[int, int]
    ) -> None:
        self._memory = memory  # its pages stay, even when the pool is closed
        self._returned, self._lent = returned, lent
        # Bytes: what they mean is said by a view, which numpy makes ten times faster.
        self.__array_interface__ = {
            "version": 3, "shape": memory.shape, "typestr": "|u1",
            "data": (memory.ctypes.data, False),
        }

    def __del__(self) -> None:
        self._returned.append(self._lent)


class HostArray:
    """An array that host and device both see; it only ever grows.

    Write to `host` and `upload`, or let a kernel write and `download`: both do nothing where the
    memory is shared.
    """

    def __init__(self, pool: Pool, dtype: Any) -> None:
        self._pool = pool
        self._dtype = np.dtype(dtype)
        self._room = 0
        self.place = 0
        self.host = np.empty(0, self._dtype)

    def reserve(self, count: int) -> "HostArray":
        """Make room for `count` entries; what was there is lost if it has to grow."""
        if count > self._room:
            if self._room:
                self._pool.free(self.place, self._room * self._dtype.itemsize)
            self._room = max(1024, 1 << (count - 1).bit_length())
            self.place = self._pool.allocate(self._room * self._dtype.itemsize)
            self.host = (
                self._pool.view(self.place, self._dtype, self._room)
                if self._pool.shared
                else np.empty(self._room, self._dtype)
            )
        return self

    def upload(self, count: int) -> None:
        if not self._pool.shared:
            self._pool.write(self.place, self.host[:count])

    def download(self, count: int) -> np.ndarray:
        """The first `count` entries, valid until a kernel writes them again."""
        if not self._pool.shared and count:
            self.host[:count] = self._pool.view(self.place, self._dtype, count)
        return self.host[:count]


def _pages(size: int) -> np.ndarray:
    """Fresh zeroed pages, in large ones where the system has them: searches jump far."""
    # Private, because the system gives no large pages to memory that could be shared.
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)

"""Steps 1-2 of a batch beside steps 4-5 of the one before (PanJoin III-A)."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["LARGE", "Pipeline"]

T = TypeVar("T")
Result = TypeVar("Result")

_END = object()

#: Bytes of a result that fills the place of one.
LARGE = 1 << 26
#: Into so many parts a result's place is cut.
_PLACES = 16


class Pipeline(Generic[T, Result]):
    """One thread that turns one item at a time into results, a few of them ahead of the reader.

    The few are what bounds the memory of an item with many results: its thread waits for them
    to be read. There may be more of them where `size` says that they are small. An item may also
    be worked on by the reader itself, which saves waking threads where nothing would be done
    beside it.
    """

    def __init__(
        self, work: Callable[[T], Iterator[Result]], ahead: int = 2,
        size: Callable[[Result], int] = lambda _: LARGE,
    ) -> None:
        self._work = work
        self._size = size
        # Simple queues have no lock in Python: what a signal raises in the reader at any moment
        # leaves none behind that the thread would wait for.
        self._items: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[tuple[object, int]] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(ahead * _PLACES):
            self._room.put(None)
        self._busy = False
        self._here: Iterator[Result] | None = None
        self.cut_short = False  # a signal ended work of the reader, which cannot go on
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watersmeet-pipeline", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether an item's results are still to be read to their end."""
        return self._busy

    def start(self, item: T, *, here: bool = False) -> None:
        """Begin an item; the results of the one before must have been read.

        `here`, each result is made when it is read, by the thread that reads it.
        """
        assert not self._busy
        self._busy = True
        if here:
            self._here = self._work(item)
        else:
            self._items.put(item)

    def results(self) -> Iterator[Result]:
        """The results of the item that runs, as they come; what its work raises is raised here."""
        while self._busy:
            result = self._next()
            if result is _END:
                self._busy = False
            elif isinstance(result, _Failure):
                self._busy = False
                raise result.error
            else:
                yield result  # type: ignore[misc]
                del result

    def _next(self) -> object:
        if self._here is None:
            result, places = self._results.get()
            for _ in range(places):
                self._room.put(None)
            return result
        self.cut_short = True
        try:
            result = next(self._here, _END)
        except Exception as error:
            result = _Failure(error)
        self.cut_short = False
        if result is _END or isinstance(result, _Failure):
            self._here = None
        return result

    def _run(self) -> None:
        while (item := self._items.get()) is not _END:
            try:
                self._put_results(item)  # type: ignore[arg-type]
            except _Closed:
                return

    def _put_results(self, item: T) -> None:
        try:
            for result in self._work(item):
                self._put(result, min(_PLACES, 1 + self._size(result) * _PLACES // LARGE))
                del result  # it is the reader's
            self._put(_END, 0)
        except _Closed:
            raise
        except BaseException as error:
            self._put(_Failure(error), 0)

    def _put(self, result: object, places: int) -> None:
        """Wait for room, but not for a reader who has gone."""
        taken = 0
        while taken < places:
            try:
                self._room.get(timeout=0.1)
                taken += 1
            except queue.Empty:
                if self._closing.is_set():
                    raise _Closed from None
        self._results.put((result, places))

    def close(self) -> None:
        """End the thread; results that nobody read are dropped."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._busy, self._here = False, None
        self._items.put(_END)
        self._thread.join()


class _Closed(Exception):
    pass


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error

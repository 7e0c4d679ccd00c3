"""StreamJoin: Arrow in, Arrow out."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from host.arrivals import Arrivals
from host.arrow_arrays import from_mask
from host.backends.choice import backend_opener, condition_of
from host.batching import Batcher
from host.collect import Collector
from host.cycles import CountsCycles, cycle_report
from host.errors import JoinError
from host.inputs import ArrivalMerger, Interleaver, Pushed, plain_schema, pushed_rows
from host.manager import JoinManager
from host.metrics import Metrics
from host.options import JoinOptions
from host.partials import output_of
from host.pipeline import Pipeline
from host.preprocess import Prepared, Preprocessor
from host.rowstore import RowStore
from host.sharing import Share
from host.watermark import Watermark
from hw.spec.tuples import Side

__all__ = ["StreamJoin"]


#: Tuples of a batch whose pairs are worth a thread of their own.
_LARGE_BATCH = 1 << 16


class StreamJoin:
    """A sliding-window theta join of two streams, exact for every batch size and engine.

    Takes the keywords of host.options.JoinOptions. `push` gives tuples and yields results,
    `finish` yields the rest; a context manager closes the engines. With `share`, (routing,
    worker, workers), it is one of several joins that are all pushed the same and find each pair
    once (host.sharing).
    """

    def __init__(
        self,
        on: str,
        window: str,
        left: pa.Schema,
        right: pa.Schema,
        share: tuple[str, int, int] | None = None,
        **more: Any,
    ) -> None:
        self.options = JoinOptions(
            on=on, window=window, left=plain_schema(left), right=plain_schema(right), **more
        )
        options = self.options
        self.condition = condition_of(options)
        self.watermarks = (Watermark(options.lateness_us), Watermark(options.lateness_us))
        self.metrics = Metrics()
        self.inputs = (
            ArrivalMerger(options.arrival_columns, (options.left, options.right))
            if options.arrival_columns
            else Interleaver()
        )
        measures = (options.measures(Side.LEFT), options.measures(Side.RIGHT))
        self.preprocessor = Preprocessor(
            self.condition, options.parsed_window, options.time_columns, self.watermarks, measures,
            None if share is None else Share(self.condition, *share),
        )
        self.stores = (self._store(Side.LEFT), self._store(Side.RIGHT))
        residual = self.condition.residual
        self._checked_columns = [sorted(names) for names in self.condition.columns]
        self._collector = Collector(options.order, self._check if residual else None)
        # A residual must see the pairs.
        self._only_counts = options.emit != "pairs" and residual is None
        self._output = output_of(options, self._collector, self.stores, self.preprocessor.share)
        self.batcher = Batcher(options)
        self._prepared: Prepared | None = None
        self.late: list[tuple[str, np.ndarray, pa.RecordBatch]] = []
        self._failure: BaseException | None = None
        self._finished = False
        self.ended: set[Side] = set()
        self._closed = False
        opener = backend_opener(options, self.condition.key_bits, self.condition.plan.both)
        self.backend_name = opener.name
        self.manager = JoinManager(
            self.condition, options.parsed_window, opener, options.workers, options.subwindow,
            measures, either_way=options.emit == "pairs" and options.order == "none",
        )
        self._pipeline: Pipeline[Prepared, pa.RecordBatch] = Pipeline(
            self._process, size=pa.RecordBatch.get_total_buffer_size
        )

    @property
    def schema(self) -> pa.Schema:
        """Of the results."""
        return self._output.schema

    def push(self, left: Pushed = None, right: Pushed = None) -> Iterator[pa.RecordBatch]:
        """Give the next tuples of either stream; iterate to get the results that are ready.

        The tuples count as pushed when this returns, iterated or not; results that were not
        read come with the next push or with `finish`. In one push left row i arrives just
        before right row i, unless arrival columns say otherwise.
        """
        self._check_open()
        self._collect(self.inputs.take(pushed_rows((left, right), self.options, self.ended)))
        return self._results()

    def replay(self, left: Pushed = None, right: Pushed = None) -> None:
        """Store tuples whose results are known: as a push does, but nothing is probed."""
        self._check_open()
        self._check_idle("tuples are replayed")
        self._collect(self.inputs.take(pushed_rows((left, right), self.options, self.ended)))
        self.batcher.flush()
        while self.batcher:
            prepared = self.preprocessor.prepare(self.batcher.take())
            self._enter(prepared)
            self._output.notice(prepared)
            self.manager.store(prepared)
            self._leave()

    def begin_at(self, rows: tuple[int, int]) -> None:
        """Before anything is pushed: number the first row of either stream so."""
        for side in Side:
            self.inputs.pushed[side] = self.preprocessor.totals[side] = rows[side]
            self.manager.chains[side].total = rows[side]
            self.stores[side].skip_to(rows[side])

    def advance(self, left: int | None = None, right: int | None = None) -> None:
        """Promise event times in microseconds: whatever comes earlier on that stream is late.

        Frees the state that only such tuples could have matched, also where the stream is silent.
        """
        self._check_open()
        # What was pushed before the promise is not judged by it, and no result is lost.
        self.batcher.flush()
        self._check_idle("the watermark is advanced")
        for side, promised in ((Side.LEFT, left), (Side.RIGHT, right)):
            if promised is not None:
                self.watermarks[side].advance(promised)
        self.manager.expire((self.watermarks[0].time, self.watermarks[1].time))
        self.manager.settle()
        self._drop_rows()

    def end(self, *, left: bool = False, right: bool = False) -> Iterator[pa.RecordBatch]:
        """Say that a stream has ended: with arrival columns the other waits for it no longer."""
        self._check_open()
        for side, ended in ((Side.LEFT, left), (Side.RIGHT, right)):
            if ended:
                self.ended.add(side)
        self._collect(self.inputs.end(self.ended))
        return self._results()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """End both streams; iterate to get the results that are left."""
        if not self._finished:
            self._check_open()
            self._finished = True
            self._collect(self.inputs.end(set(Side)))
            self.batcher.flush()
        return self._results()

    def take_late(self) -> list[tuple[str, np.ndarray, pa.RecordBatch]]:
        """The side output with late='keep': (side, numbers, rows) since the last call."""
        taken, self.late = self.late, []
        return taken

    def snapshot(self, directory: str) -> None:
        """Write all state to a new directory; `resume` goes on from it with the same output."""
        from host.snapshot import write_snapshot

        self._check_open()
        if self.preprocessor.share is not None:
            raise JoinError("a share of a join has no snapshots: replay to it what was pushed")
        if self._pipeline.busy or self._prepared is not None:
            raise JoinError("read the results of the last push to their end before a snapshot")
        self.manager.settle()
        write_snapshot(self, directory)

    @classmethod
    def resume(cls, directory: str, **changed: Any) -> "StreamJoin":
        """The join of a snapshot; engine options (backend, device, workers ...) may be changed."""
        from host.snapshot import read_snapshot

        return read_snapshot(cls, directory, changed)

    def close(self) -> None:
        """Release the engines; what was not read is lost."""
        if self._closed:
            return
        self._finished = self._closed = True
        self._pipeline.close()
        self.manager.close()
        self.preprocessor.close()

    @property
    def engine_report(self) -> str | None:
        """One line of what the engines counted themselves, where they count anything."""
        backends = [worker.backend for worker in self.manager.workers]
        counting = [backend for backend in backends if isinstance(backend, CountsCycles)]
        if not counting:
            return None
        uses = [backend.use() for backend in counting]
        return cycle_report(uses, counting[0].clock(), sum(self.metrics.tuples))

    def __enter__(self) -> "StreamJoin":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put_back(self, unprocessed: list[Arrivals], ended: set[Side]) -> None:
        """Collect again what waited when a snapshot was taken."""
        self.ended |= ended
        self.inputs.end(ended)
        for arrivals in unprocessed:
            self.batcher.add(arrivals)

    # The five steps of a batch.

    def _collect(self, arrivals: Arrivals | None) -> None:
        """Step 1."""
        if arrivals is not None and len(arrivals):
            for side in Side:
                self.metrics.tuples[side] += len(arrivals.positions[side])
            self.batcher.add(arrivals)
        self.batcher.tick()

    def _results(self) -> Iterator[pa.RecordBatch]:
        """Run what is pending: step 2 of a batch here, steps 3 to 5 of the one before beside it."""
        while self.batcher or self._prepared or self._pipeline.busy:
            self._check_alive()
            begin = time.perf_counter()
            try:
                if self._prepared is None and self.batcher:
                    self._prepared = self.preprocessor.prepare(self.batcher.take())
                for result in self._pipeline.results():
                    self.metrics.seconds += time.perf_counter() - begin
                    yield result
                    del result  # its memory may be the next one's
                    begin = time.perf_counter()
                self._check_alive()  # it may have been closed between two results
                if self._prepared is not None:
                    # With no further batch to prepare, nothing would run beside it but pairs,
                    # and those of a small batch are written before another thread wakes up.
                    small = self.options.emit != "pairs" or len(self._prepared) < _LARGE_BATCH
                    here = small and not self.batcher
                    self._pipeline.start(self._prepared, here=here)
                    self._prepared = None
            except Exception as error:
                self._failure = error
                raise
            finally:
                self.metrics.seconds += time.perf_counter() - begin
                self._note_engines()
        if self._finished:
            self.manager.settle()
            self._note_engines()

    def _note_engines(self) -> None:
        self.metrics.engine_s = self.manager.busy_s
        self.metrics.structures = self.manager.structures

    def _process(self, prepared: Prepared) -> Iterator[pa.RecordBatch]:
        """Steps 3 to 5 of one batch, in the pipeline's thread."""
        self._enter(prepared)
        found = self.manager.find(prepared, counting=self._only_counts)
        # Where results ask nothing more of the window, it moves on while they are made.
        if not found.hits:
            self.manager.store(prepared)
        for result, pairs in self._output.results(prepared, found):
            self.metrics.pairs += pairs
            yield result
            del result  # its memory may be the next one's
        if found.hits:
            self.manager.store(prepared)
        self._leave()

    def _enter(self, prepared: Prepared) -> None:
        """The batch's rows can be asked for from here on."""
        for side in Side:
            self.stores[side].append(prepared.sides[side].rows)
            self._set_late_aside(prepared, side)

    def _leave(self) -> None:
        """The batch's tuples are in the window from here on."""
        self._drop_rows()
        self.metrics.batches += 1

    def _check(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The residual on candidate pairs, given by row numbers."""
        residual = self.condition.residual
        assert residual is not None
        rows = [
            self.stores[side].take(numbers, self._checked_columns[side])
            for side, numbers in ((Side.LEFT, left), (Side.RIGHT, right))
        ]
        return residual.evaluate(*rows)

    def _set_late_aside(self, prepared: Prepared, side: Side) -> None:
        batch = prepared.sides[side]
        if batch.late is None or not batch.late.any():
            return
        self.metrics.late[side] += int(batch.late.sum())
        if self.options.late == "keep":
            rows = batch.rows.filter(from_mask(batch.late))
            self.late.append((side.letter, batch.numbers[batch.late], rows))

    def _drop_rows(self) -> None:
        for side in Side:
            self.stores[side].drop_before(self.manager.oldest_row(side))

    def _store(self, side: Side) -> RowStore:
        """Room for the columns that pairs or the residual will ask for."""
        options, needed = self.options, set(self.condition.kept_columns[side])
        if options.emit == "pairs":
            needed |= {column.column for column in options.selected if column.side is side}
        schema = options.schema(side)
        return RowStore(pa.schema([field for field in schema if field.name in needed]))

    def _check_alive(self) -> None:
        if self._closed:
            raise JoinError("this join is closed: what was not read is lost")
        if self._failure is not None:
            raise JoinError(f"this join has failed before: {self._failure}")
        if self._pipeline.cut_short:
            raise JoinError("this join was interrupted in the middle of a batch: begin another one")

    def _check_idle(self, what: str) -> None:
        if self.batcher or self._prepared is not None or self._pipeline.busy:
            raise JoinError(f"read the results of the last push before {what}")

    def _check_open(self) -> None:
        self._check_alive()
        if self._finished:
            raise JoinError("this join is finished: begin another one")

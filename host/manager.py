"""JoinManager: PanJoin's five steps over workers that hold the subwindows."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

import numpy as np

from host import messages
from host.aggregates import Measure
from host.backend import Backend, Probes
from host.chain import Chain, Subwindow
from host.condition import JoinCondition
from host.hits import Found, Hits
from host.preprocess import Prepared, SideBatch
from host.summaries import Summaries
from host.targets import Target, targets_of
from host.totals import Totals
from host.views import Seen
from host.worker import Worker
from hw.spec.tuples import Side
from hw.spec.windows import RowWindow, TimeWindow, Window

__all__ = ["JoinManager"]

T = TypeVar("T")


#: Waits for what a question to the workers gives, and adds it.
Answer = Callable[[Found], None]


class JoinManager:
    """Sends each batch to the workers and keeps the chains; knows no Arrow and no output.

    `find` and then `store` must be called once each for every prepared batch, in order. What is
    stored is under way when `store` returns: workers do what they are told in its order, so that
    only `settle` waits for it.

    either_way  it does not matter which tuple of a pair arrived later: where both are of one
                batch, the left one may be the probe
    """

    def __init__(
        self,
        condition: JoinCondition,
        window: Window,
        open_backend: Callable[[], Backend],
        workers: int = 1,
        subwindow_rows: int | None = None,
        measures: tuple[Sequence[Measure], Sequence[Measure]] = ((), ()),
        either_way: bool = False,
    ) -> None:
        self.measures = measures
        self.either_way = either_way
        self.condition = condition
        self.window = window
        self.workers = [Worker(number, open_backend) for number in range(workers)]
        engine = self.workers[0].backend.name
        self.chains = tuple(
            Chain(side, window, workers, subwindow_rows, engine) for side in Side
        )
        self._summaries = Summaries(self.chains, self.workers, measures)
        self._under_way: list[Future[None]] = []

    # Steps 3 to 5: send the probes, let the workers work, collect their records.

    def find(self, prepared: Prepared, *, counting: bool) -> Found:
        """What the batch's tuples match among those that arrived before them.

        With `counting`, subwindows that every probe sees whole are only counted. The hits'
        arrays are valid until `store`.
        """
        try:
            return self._found(prepared, counting)
        finally:
            # Done by now; and what it raised is the reason of what went wrong after it.
            self.settle()

    def _found(self, prepared: Prepared, counting: bool) -> Found:
        probes = [self._probes(batch) for batch in prepared.sides]
        found = Found((
            Totals(len(probes[0]), self.measures[Side.RIGHT]),
            Totals(len(probes[1]), self.measures[Side.LEFT]),
        ))
        if counting and self._summaries.find(prepared, probes, found):
            return found
        seen = [Seen(self.window, batch) for batch in prepared.sides]
        asked = [
            self._ask_chain(prepared.sides[side], probes[side], seen[side], counting)
            for side in Side
        ]
        if all(map(len, probes)):
            once = self.either_way and self._meets_once(prepared)
            asked += [
                self._ask_own_batch(prepared, probes[side], seen[side], once)
                for side in (Side if not once else [Side.LEFT])
            ]
        for answer in asked:
            answer(found)
        return found

    def _probes(self, batch: SideBatch) -> Probes:
        if batch.rectangles is not None:
            return Probes(batch.side, batch.keys, rectangles=batch.rectangles)
        if self.condition.predicate is not None:
            return Probes(batch.side, batch.keys, predicate=self.condition.predicate)
        wanted = self.condition.intervals(batch.side, batch.keys)
        return Probes(batch.side, batch.keys, wanted=wanted)

    def _ask_chain(
        self, batch: SideBatch, probes: Probes, seen: Seen, counting: bool
    ) -> Answer:
        """Send PROBE to every worker with a subwindow that some probe sees (step 3)."""
        chain = self.chains[batch.side.other]
        targets = targets_of(chain, seen) if len(probes) else []
        counted = [target for target in targets if counting and target.whole]
        listed = [target for target in targets if not (counting and target.whole)]
        counts = self._ask(counted, lambda numbers: messages.count(chain.side, numbers, probes))
        totals = [
            (measure, future)
            for measure in (self.measures[chain.side] if counting else ())
            for _, future in self._ask(counted, messages.aggregate(chain, probes, measure))
        ]
        listings = self._ask(listed, lambda numbers: messages.probe(chain.side, numbers, probes))

        def answer(found: Found) -> None:
            for _, count in counts:
                found.count(batch.side, count.result())
            for measure, total in totals:
                found.totals[batch.side].add(measure, total.result())
            hits = []
            for asked, future in listings:
                for target, candidates in zip(asked, future.result(), strict=True):
                    subwindow = target.subwindow
                    hits.append(
                        Hits(
                            batch, candidates, subwindow.base, _values(subwindow), seen,
                            partial(seen.view.of, subwindow),
                            None if target.whole else (subwindow.smallest, subwindow.largest),
                            kept=subwindow.kept,
                        )
                    )
            found.hits += sorted(hits, key=lambda one: one.base)

        return answer

    def _ask(
        self, targets: list[Target], command: Callable[[list[int]], Callable[[Backend], T]]
    ) -> list[tuple[list[Target], Future[T]]]:
        """Give each worker the command for its own subwindows among the targets."""
        asked = []
        for worker in self.workers:
            mine = [target for target in targets if target.subwindow.worker == worker.number]
            if mine:
                numbers = [target.subwindow.number for target in mine]
                asked.append((mine, self._send(worker, command(numbers))))
        return asked

    def _send(self, worker: Worker, command: Callable[[Backend], T]) -> Future[T]:
        """One worker alone is asked in this thread: another would only have to wake up."""
        return worker.here(command) if len(self.workers) == 1 else worker.run(command)

    def _meets_once(self, prepared: Prepared) -> bool:
        """Whether two tuples of the batch that match make a pair, whichever arrived later."""
        if any(batch.stored is not None for batch in prepared.sides):
            return False  # which worker finds a pair is told by the one that arrived before
        if not isinstance(self.window, RowWindow):
            return True
        return all(len(batch) <= self.window.rows(batch.side) for batch in prepared.sides)

    def _ask_own_batch(
        self, prepared: Prepared, probes: Probes, seen: Seen, once: bool
    ) -> Answer:
        """Tuples of the two streams in one batch: each probes those that arrived before it.

        With `once` the probes meet all the others.
        """
        probe, stored = prepared.sides[probes.side], prepared.sides[probes.side.other]
        worker = self.workers[self.chains[stored.side].turn]
        tuples = stored.tuples(0, len(stored), stored.first)
        future = self._send(worker, lambda backend: backend.find_among(tuples, probes))
        times = stored.times
        look = partial(seen.view.of_batch, stored, everything=once)
        span = None if times is None or not once else (int(times.min()), int(times.max()))

        def answer(found: Found) -> None:
            found.hits.append(
                Hits(
                    probe, future.result(), stored.first, stored.carried, seen, look, span,
                    in_batch=not once,
                )
            )

        return answer

    # What the batch leaves behind: its tuples in the newest subwindow, the oldest expired.

    def store(self, prepared: Prepared) -> None:
        """INSERT the batch and EXPIRE what no later tuple can see.

        What was found before may no longer be asked for.
        """
        parts = [list[messages.Part]() for _ in self.workers]
        for batch in prepared.sides:
            for part in self._parts(batch):
                parts[part[1].worker].append(part)
        for worker, mine in zip(self.workers, parts, strict=True):
            if mine:
                # A thread that has to wake up takes longer than an engine to queue something.
                alone = len(self.workers) == 1 and getattr(worker.backend, "queues", False)
                send = worker.here if alone else worker.run
                self._under_way.append(send(messages.store(mine)))
        self.expire(prepared.watermarks)

    def settle(self) -> None:
        """Wait for what was stored; what a worker raised meanwhile is raised here."""
        under_way, self._under_way = self._under_way, []
        for future in under_way:
            future.result()

    def _parts(self, batch: SideBatch) -> Iterator[messages.Part]:
        """The subwindows that take the batch, whether each is begun by it, and what it takes."""
        chain, offset = self.chains[batch.side], 0
        end = chain.total + len(batch)
        if isinstance(self.window, RowWindow):
            # Rows that a batch larger than the window pushes out again are never stored.
            offset = min(max(0, end - self.window.rows(batch.side) - chain.total), len(batch))
            self._skip(chain, offset)
        while offset < len(batch):
            fresh = chain.needs_new()
            newest = chain.create() if fresh else chain.newest
            assert newest is not None
            taken = min(newest.room, len(batch) - offset)
            tuples = batch.tuples(offset, offset + taken, newest.base)
            self._extend(newest, batch, offset, taken, tuples)
            chain.total += taken
            yield batch.side, newest, fresh, tuples
            offset += taken

    def _skip(self, chain: Chain, rows: int) -> None:
        """Let rows go by unstored: everything before them is out of the window, too."""
        if not rows:
            return
        chain.total += rows
        gone, chain.subwindows = chain.subwindows, []
        self._expire(chain, gone)

    def _extend(
        self, newest: Subwindow, batch: SideBatch, offset: int, taken: int, tuples: np.ndarray
    ) -> None:
        carried = {name: all_[offset : offset + taken] for name, all_ in batch.carried.items()}
        newest.extend(taken, self._places(newest, batch, taken, tuples), carried)

    def _places(
        self, newest: Subwindow, batch: SideBatch, taken: int, tuples: np.ndarray
    ) -> np.ndarray | range:
        """Where the stored ones of the next `taken` rows are on the window's axis."""
        if batch.times is None and len(tuples) == taken:
            first = newest.base + newest.rows
            return range(first, first + taken)
        rows = tuples["rid"].astype(np.int64) + newest.base
        return rows if batch.times is None else batch.times[rows - batch.first]

    def expire(self, watermarks: tuple[int, int]) -> None:
        """EXPIRE whole subwindows by the rows that came or by the streams' watermarks."""
        timed = isinstance(self.window, TimeWindow)
        for chain in self.chains:
            progress = watermarks[chain.side.other] if timed else chain.total
            self._expire(chain, chain.take_expired(progress))

    def _expire(self, chain: Chain, gone: list[Subwindow]) -> None:
        for subwindow in gone:
            told = self._tell(subwindow, messages.expire(chain.side, subwindow))
            self._under_way.append(told)

    def _tell(self, subwindow: Subwindow, command: Callable[[Backend], None]) -> Future[None]:
        return self.workers[subwindow.worker].run(command)

    def oldest_row(self, side: Side) -> int:
        """Number of the first row of a stream that a later probe may still see."""
        subwindows = self.chains[side].subwindows
        return min((sub.base for sub in subwindows), default=self.chains[side].total)

    def contents(self, side: Side) -> Iterator[tuple[Subwindow, np.ndarray]]:
        """Each subwindow of a stream with its main array."""
        for subwindow in self.chains[side]:
            worker = self.workers[subwindow.worker]
            yield subwindow, worker.run(messages.read(side, subwindow)).result()

    def restore(self, side: Side, subwindow: Subwindow, tuples: np.ndarray) -> None:
        """Put back a subwindow that `contents` gave, as the next of its chain."""
        chain = self.chains[side]
        subwindow.worker = subwindow.number % len(self.workers)
        chain.subwindows.append(subwindow)
        for name, array in subwindow.carried.items():
            subwindow.note_nulls(name, array.values)
        self._tell(subwindow, messages.create(side, subwindow)).result()
        if len(tuples):
            self._tell(subwindow, messages.insert(side, subwindow, tuples)).result()

    @property
    def busy_s(self) -> float:
        """Seconds that the engines have worked, added up."""
        return sum(worker.busy_s for worker in self.workers)

    @property
    def structures(self) -> dict[str, int]:
        """Subwindows that were created, by the structure that a chooser gave them."""
        total: dict[str, int] = {}
        for worker in self.workers:
            chooser = getattr(worker.backend, "chooser", None)
            for name, count in chooser.decided.items() if chooser else ():
                total[name] = total.get(name, 0) + count
        return total

    def close(self) -> None:
        for worker in self.workers:
            worker.close()


def _values(subwindow: Subwindow) -> dict[str, np.ndarray]:
    return {name: array.values for name, array in subwindow.carried.items()}

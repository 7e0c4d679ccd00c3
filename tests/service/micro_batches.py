"""What the tests of the worker service share: micro-batches as parts, jobs, and the judge."""

import numpy as np
import pyarrow as pa

from host.options import JoinOptions
from host.options_json import to_plain
from host.service import Job
from host.service.job import join_directory
from host.spool import write_part
from hw.spec import reference
from hw.spec.tuples import Side
from hw.spec.windows import TimeWindow
from tests.helpers import arrival_of, null_safe, stream

__all__ = ["NEAR", "Source", "near", "streams"]

NEAR = "l.a BETWEEN r.b - 1 AND r.b + 1 AND l.k = r.k"
near = null_safe(lambda a, b, k, q: abs(a - b) <= 1 and k == q)


def streams(rows=(40, 44), seed=7):
    """Two streams of numbers, keys, texts and times that go back now and then."""
    random = np.random.default_rng(seed)
    tables = []
    for side, name in zip(Side, "ab", strict=True):
        numbers = [None if n == 6 else int(n) for n in random.integers(0, 7, rows[side])]
        seconds = np.arange(rows[side]) // 2 + random.integers(-4, 1, rows[side])
        times = [None if n % 13 == 12 else int(t) * 1_000_000 for n, t in enumerate(seconds)]
        tables.append(
            stream(
                **{name: pa.array(numbers, pa.int32())},
                k=pa.array(random.integers(0, 3, rows[side])),
                s=pa.array(["x" * int(n) for n in random.integers(0, 4, rows[side])]),
                t=pa.array(times, pa.timestamp("us")),
            )
        )
    return tables


class Source:
    """Two tables that come in micro-batches of those sizes, (left, right) each."""

    def __init__(self, state_dir, tables, splits, window, on=NEAR, run="a", join="join", **options):
        if options.get("emit", "pairs") == "pairs":
            options.setdefault("select", ["l.id", "r.id"])
        self.state_dir, self.tables, self.splits, self.run = str(state_dir), tables, splits, run
        left, right = (table.schema for table in tables)
        self.options = JoinOptions(on=on, window=window, left=left, right=right, **options)
        self.join = join
        self.directory = join_directory(self.state_dir, "query", join)

    def first(self, epoch):
        """Rows of either stream before an epoch."""
        return [sum(split[side] for split in self.splits[:epoch]) for side in Side]

    def parts(self, epoch, count=2):
        """The epoch's rows in `count` parts, both streams in each."""
        rows = [
            self.tables[side].slice(self.first(epoch)[side], self.splits[epoch][side])
            for side in Side
        ]
        return tuple(
            write_part(
                self.directory, epoch, f"{self.run}-{number}",
                [(side, batch) for side in Side for batch in _share(rows[side], number, count)],
            )
            for number in range(count)
        )

    def job(self, epoch, worker=0, workers=1, parts=None, **more):
        return Job(
            query="query", join=self.join, epoch=epoch, worker=worker, workers=workers,
            state_dir=self.state_dir, options=to_plain(self.options),
            parts=self.parts(epoch) if parts is None else parts, **more,
        )

    # The judge: one list of pairs for each epoch.

    def expected(self, holds=near):
        """The pairs of each epoch: those whose later tuple came in it."""
        rows = [table.to_pylist() for table in self.tables]
        late = self.late()

        def match(left, right):
            if (Side.LEFT, left) in late or (Side.RIGHT, right) in late:
                return None
            one, other = rows[Side.LEFT][left], rows[Side.RIGHT][right]
            return holds(one["a"], other["b"], one["k"], other["k"])

        window = self.options.parsed_window
        times = self._times() if isinstance(window, TimeWindow) else None
        found = reference.pairs(arrival_of(self.splits), match, window, times)
        return [
            sorted(pair for pair in found if self._epoch(pair) == epoch)
            for epoch in range(len(self.splits))
        ]

    def late(self):
        """Tuples older than the watermark of their epoch, which the epochs before it made."""
        if self.options.lateness_us is None:
            return set()
        times, late, newest = self._times(), set(), [None, None]
        for epoch, split in enumerate(self.splits):
            first = self.first(epoch)
            rows = [(side, first[side] + row) for side in Side for row in range(split[side])]
            known = [(side, row) for side, row in rows if times[side][row] is not None]
            if None not in newest:
                watermark = min(newest) - self.options.lateness_us
                late |= {(side, row) for side, row in known if times[side][row] < watermark}
            for side, row in known:
                newest[side] = max(times[side][row], newest[side] or times[side][row])
        return late

    def _times(self):
        name = self.options.time_columns[0]
        return [
            [None if time is None else int(time.timestamp() * 1_000_000 + 0.5) for time in column]
            for column in (
                table[name].cast(pa.timestamp("us", "UTC")).to_pylist() for table in self.tables
            )
        ]

    def _epoch(self, pair):
        return max(
            next(e for e in range(len(self.splits)) if pair[side] < self.first(e + 1)[side])
            for side in Side
        )


def _share(table, number, count):
    begin, end = (table.num_rows * n // count for n in (number, number + 1))
    return table.slice(begin, end - begin).combine_chunks().to_batches()

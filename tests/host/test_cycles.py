"""What a join says about the cycles that its engines counted."""

import json

from host.cycles import Clock, CoreUse, cycle_report, routed_clock

USES = [
    CoreUse(cycles=1_000, stalled=1, tuples=10, records=10),
    CoreUse(cycles=250_000, stalled=50_000, tuples=90_000, records=90_000),
]


def test_the_busiest_engine_sets_the_time():
    assert cycle_report(USES, Clock(125.0, "core_wide"), 100_000) == (
        "rtl: 250,000 cycles, 20% of them waiting for memory, 0.400 tuples a cycle; "
        "0.002000 s, 50,000,000 tuples/s at the 125.0 MHz of core_wide"
    )


def test_an_engine_that_did_nothing_took_no_time():
    idle = CoreUse(cycles=0, stalled=0, tuples=0, records=0)
    assert cycle_report([idle], Clock(125.0, "core_wide"), 0) == (
        "rtl: 0 cycles, 0% of them waiting for memory, 0.000 tuples a cycle; "
        "0.000000 s, 0 tuples/s at the 125.0 MHz of core_wide"
    )


def test_a_clock_comes_from_place_and_route(tmp_path):
    path = tmp_path / "pnr.json"
    assert routed_clock("core_wide", path) == Clock(None, "pnr.json has no core_wide: run make pnr")
    results = [{"design": "merger", "mhz": 250.1}, {"design": "core_wide", "mhz": 141.5}]
    path.write_text(json.dumps({"device": "LFE5UM5G-85F", "results": results}))
    assert routed_clock("core_wide", path) == Clock(141.5, "core_wide")
    assert routed_clock("core_narrow", path).mhz is None


def test_a_core_that_nobody_routed_has_no_time():
    assert cycle_report(USES, routed_clock(None), 100_000) == (
        "rtl: 250,000 cycles, 20% of them waiting for memory, 0.400 tuples a cycle; "
        "its time is unknown, as no core of these sizes is placed and routed"
    )

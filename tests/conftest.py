"""Markers, seeds, the backend fixture and the one Spark session."""

import os
import secrets

import pytest
from hypothesis import HealthCheck, settings

#: Engines that every test of joins runs on; another joins with one line.
BACKENDS = ["numpy", "opencl"]
#: Engines that keep the one conformance suite: these, and the simulated gateware.
CONFORMING = [*BACKENDS, pytest.param("rtl", marks=pytest.mark.sim)]

# The number of examples is that of the whole property suite: see tests.helpers.share.
settings.register_profile(
    "default",
    max_examples=2_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("soak", parent=settings.get_profile("default"), max_examples=5_000)
settings.load_profile("default")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """One seed for a run and its workers: from WATERSMEET_SEED, or new."""
    if config.option.hypothesis_seed is None:
        # Workers inherit the environment.
        seed = os.environ.setdefault("WATERSMEET_SEED", str(secrets.randbelow(1 << 32)))
        config.option.hypothesis_seed = seed


def pytest_collection_modifyitems(items):
    """Files that take long begin first, so that no worker is left alone with one at the end."""
    long = ("spark", "sim", "formal", "slow")
    ranks = {}
    for item in items:
        own = [rank for rank, name in enumerate(long) if item.get_closest_marker(name)]
        ranks[item.path] = min(ranks.get(item.path, len(long)), *own, len(long))
    items.sort(key=lambda item: ranks[item.path])


def pytest_report_header(config):
    return f"seed: {config.option.hypothesis_seed} (again with WATERSMEET_SEED)"


@pytest.fixture(params=BACKENDS)
def backend(request):
    """The name of an engine that is here."""
    return request.param


@pytest.fixture(scope="session")
def small_cores():
    """Where the rtl backend's libraries of a small core are, for 32-bit and 64-bit keys.

    Its main array is far smaller than a subwindow of the tests, which then lie in several pieces.
    """
    from hw.rtl.digest import library_directory
    from hw.spec import JoinParams
    from sim.build import build_library
    from sim.verilated import QUICK

    sizes = dict(subwindow=64, partitions=8, lanes=2, probers=2, mergers=2, insert_buffer=32)
    where = library_directory() / "small"
    for key_bits in (32, 64):
        build_library(
            JoinParams(key_bits=key_bits, **sizes), slots=7, where=where, optimise=QUICK
        )
    return where


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """The one Spark session: local, two cores, tries a task four times."""
    from tests.spark_bridge.sparks import new_session

    os.environ["WATERSMEET_CHAOS"] = str(os.getpid())  # marks the daemons of this run
    with new_session("local[2,4]", tmp_path_factory.mktemp("spark")) as session:
        yield session

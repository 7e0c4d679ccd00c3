"""Markers, seeds and the backend fixture."""

import os
import secrets

import pytest
from hypothesis import HealthCheck, settings

#: Engines that keep the one conformance suite; another joins with one line.
BACKENDS = ["numpy", "opencl"]

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


def pytest_report_header(config):
    return f"seed: {config.option.hypothesis_seed} (again with WATERSMEET_SEED)"


@pytest.fixture(params=BACKENDS)
def backend(request):
    """The name of an engine that is here."""
    return request.param

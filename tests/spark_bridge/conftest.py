"""One Spark session for all tests of the bridge, and streams out of files."""

import os

import pytest

from tests.spark_bridge.sparks import Folder, new_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """Local Spark with two cores, which tries a task four times."""
    os.environ["WATERSMEET_CHAOS"] = str(os.getpid())  # marks the daemons of this run
    with new_session("local[2,4]", tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture
def folder(spark, tmp_path):
    """A place for the files of two streams, checkpoints, state and results."""
    return Folder(spark, tmp_path)

"""Streams out of files."""

import pytest

from tests.spark_bridge.sparks import Folder


@pytest.fixture
def folder(spark, tmp_path):
    """A place for the files of two streams, checkpoints, state and results."""
    return Folder(spark, tmp_path)

"""pyspark.daemon whose Python workers begin with everything loaded, for runs that crash many."""

import os

#: Processes that are forked must find no thread of numpy's.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pyarrow.compute  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import spark_bridge.tasks  # noqa: F401
import tests.spark_bridge.chaos  # noqa: F401

if __name__ == "__main__":
    manager()

"""Joins of Spark DataFrames, streaming or not, that Spark itself refuses or takes long for."""

from spark_bridge.join import explain, stream_join
from spark_bridge.live_table import live_table
from spark_bridge.page import serve_page
from spark_bridge.resources import fpga_profile

__all__ = ["explain", "fpga_profile", "live_table", "serve_page", "stream_join"]

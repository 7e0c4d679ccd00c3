"""Windows, workers and results: joins of two streams from Python."""

from host.errors import JoinError
from host.stream_join import StreamJoin

__all__ = ["JoinError", "StreamJoin"]

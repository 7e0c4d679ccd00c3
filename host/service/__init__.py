"""The worker daemon that holds a join's windows for others, and its client."""

from host.service.client import WorkerClient
from host.service.job import Job
from host.spool import Part

__all__ = ["Job", "Part", "WorkerClient"]

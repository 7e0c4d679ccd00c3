"""Spark's resources: the device that a task may open, and the profile that asks for one."""

from pyspark import TaskContext
from pyspark.resource import ResourceProfile, ResourceProfileBuilder, TaskResourceRequests

__all__ = ["RESOURCE", "device_of_task", "fpga_profile"]

#: The name under which Spark schedules accelerators: spark.executor.resource.fpga.*
RESOURCE = "fpga"


def device_of_task(asked: str | None) -> str | None:
    """The device that Spark gave this task; without such a resource, the one that was asked for.

    None is the engine's default device.
    """
    context = TaskContext.get()
    given = context.resources().get(RESOURCE) if context is not None else None
    return given.addresses[0] if given is not None else asked


def fpga_profile() -> ResourceProfile:
    """For stream_join's `profile`: each task of the join has an accelerator of its own."""
    requests = TaskResourceRequests().cpus(1).resource(RESOURCE, 1)
    profile: ResourceProfile = ResourceProfileBuilder().require(requests).build
    return profile

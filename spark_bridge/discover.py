"""Spark's discovery script: the accelerators of this machine as the resource `fpga`.

    spark.executor.resource.fpga.discoveryScript = <environment>/bin/watersmeet-discover
"""

import json
import sys

from hw.opencl.devices import DeviceError, list_devices
from spark_bridge.resources import RESOURCE

__all__ = ["main"]


def main() -> int:
    """Print the addresses in Spark's form: the numbers that `watersmeet devices` shows."""
    try:
        devices = list_devices()
    except DeviceError as error:
        print(f"watersmeet-discover: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"name": RESOURCE, "addresses": [str(one.number) for one in devices]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

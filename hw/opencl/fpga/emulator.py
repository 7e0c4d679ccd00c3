"""Intel's FPGA emulator, as its packages install it next to Python, made known to OpenCL.

    python -m hw.opencl.fpga.emulator watersmeet selftest --backend opencl --device emulation
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["environment", "library", "main"]


def library() -> Path:
    """Where the emulator's driver lies in this Python's environment, if it is installed."""
    return Path(sys.prefix) / "lib" / "libintelocl_emu.so"


def environment(folder: Path, kernels: int = 16) -> dict[str, str]:
    """Variables under which a process finds the emulator, and OpenCL's other devices too.

    They count only if they are set before OpenCL looks for devices. The .icd file goes to `folder`,
    because the one that the packages ship names a path that does not exist. `kernels` run at once
    at most: each is a thread, and threads without work spin, so ask for no more than needed; where
    launches are staged, four do.
    """
    (folder / "fpga_emulator.icd").write_text(f"{library()}\n")
    return {
        "OCL_ICD_VENDORS": str(folder),
        "DPCPP_CPU_NUM_CUS": str(kernels),
        # Channels as deep as the program says.
        "CL_CONFIG_CHANNEL_DEPTH_EMULATION_MODE": "strict",
        # On-chip memory: the index array of the paper, 64K keys, in each partitioner.
        "CL_CONFIG_CPU_FORCE_LOCAL_MEM_SIZE": "8MB",
    }


def main(command: Sequence[str] | None = None) -> int:
    """Run a command that finds the emulator among its devices, and return its exit code."""
    command = sys.argv[1:] if command is None else command
    if not command:
        print("usage: python -m hw.opencl.fpga.emulator COMMAND ...", file=sys.stderr)
        return 2
    if not library().is_file():
        print(f"the FPGA emulator is not installed ({library()}): run make setup", file=sys.stderr)
        return 1
    with TemporaryDirectory() as folder:
        found = {**os.environ, **environment(Path(folder), kernels=4)}
        return subprocess.run(command, env=found, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

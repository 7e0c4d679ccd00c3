"""Intel's FPGA emulator, as its packages install it next to Python, made known to OpenCL."""

import sys
from pathlib import Path

__all__ = ["environment", "library"]




def library() -> Path:
    """Where the emulator's driver lies in this Python's environment, if it is installed."""
    return Path(sys.prefix) / "lib" / "libintelocl_emu.so"


def environment(folder: Path, kernels: int = 16) -> dict[str, str]:
    """Variables under which a process finds the emulator, and OpenCL's other devices too.

    They count only if they are set before OpenCL looks for devices. The .icd file goes to `folder`,
    because the one that the packages ship names a path that does not exist. `kernels` run at once
    at most: each is a thread, and threads without work spin, so ask for no more than needed.
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

"""python -m hw.opencl.fpga > engine.cl: the program's text, for an FPGA's offline compiler."""

import argparse
import sys
from collections.abc import Sequence

from hw.opencl.fpga.source import sizes_of, source
from hw.spec.params import JoinParams

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hw.opencl.fpga", description=__doc__)
    parser.add_argument("--depth", type=int, default=64, help="words of a channel")
    parser.add_argument(
        "--key-depth", type=int, default=512, help="words of a channel from memory to a prober"
    )
    for name, default in sizes_of(JoinParams()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    given = vars(parser.parse_args(arguments))
    depth, key_depth = given.pop("depth"), given.pop("key_depth")
    try:
        text = source(JoinParams(**given), depth, key_depth)
    except ValueError as wrong:
        parser.error(str(wrong))
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

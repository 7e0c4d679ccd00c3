"""python -m hw.opencl.fpga > engine.cl: the program's text, for an FPGA's offline compiler."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields

from hw.opencl.fpga.source import source
from hw.spec.params import JoinParams

__all__ = ["main"]

#: Sizes that do not change the program.
_OF_THE_HOST = ("subwindow", "insert_buffer", "lanes")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hw.opencl.fpga", description=__doc__)
    parser.add_argument("--depth", type=int, default=64, help="words of a channel")
    parser.add_argument(
        "--key-depth", type=int, default=512, help="words of a channel from memory to a prober"
    )
    for size in fields(JoinParams):
        if size.name not in _OF_THE_HOST:
            parser.add_argument(f"--{size.name.replace('_', '-')}", type=int, default=size.default)
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

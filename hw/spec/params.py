"""Every size of an engine, checked once."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["MODES", "JoinParams", "parse_params"]

#: How tuples wait before they are merged into the main array: in a sorted insertion tier, or as in
#: PanJoin in an unsorted insertion buffer that every probe scans.
MODES = ("tiered", "paper")
#: PanJoin's own sizes (section V), where the mode is its own.
_PAPER = {"partitions": 1 << 16, "insert_buffer": 1 << 10}


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True, kw_only=True)
class JoinParams:
    """The sizes of one engine; layers pass it whole.

    key_bits       width of a key, 32 or 64
    subwindow      most tuples that one subwindow holds (PanJoin's N_Sub)
    partitions     entries of a subwindow's index array (PanJoin's P)
    insert_buffer  tuples that wait before they are merged into the main array (PanJoin's B)
    bands          most closed intervals that one probe tuple asks for
    mergers        mergers side by side in an insertion engine
    lanes          tuples a cycle of one wide merger
    probers        probers side by side in a probing engine
    cores          join cores under one distribution tree
    mode           of MODES; of the throughput engine on OpenCL
    """

    key_bits: int = 32
    subwindow: int = 1 << 16
    partitions: int = 1 << 10
    insert_buffer: int = 1 << 10
    bands: int = 4
    mergers: int = 8
    lanes: int = 4
    probers: int = 8
    cores: int = 1
    mode: str = "tiered"

    def __post_init__(self) -> None:
        if self.key_bits not in (32, 64):
            raise ValueError(f"key_bits must be 32 or 64, not {self.key_bits}")
        if not 1 <= self.subwindow < 1 << 31:
            # Bit 31 of a record's end is its `not` label.
            raise ValueError(f"subwindow must be from 1 to {(1 << 31) - 1}, not {self.subwindow}")
        for name in ("partitions", "insert_buffer", "mergers", "lanes", "probers", "cores"):
            value = getattr(self, name)
            if not _is_power_of_two(value):
                raise ValueError(f"{name} must be a power of two, not {value}")
        if self.mode not in MODES:
            raise ValueError(f"mode must be {' or '.join(MODES)}, not {self.mode!r}")
        if not 1 <= self.bands <= 4:
            raise ValueError(f"bands must be from 1 to 4, not {self.bands}")

    @property
    def partition_rows(self) -> int:
        """Tuples between two entries of the index array (PanJoin's N_P = N_Sub / P), at least 1."""
        return max(1, -(-self.subwindow // self.partitions))


def parse_params(given: str | Mapping[str, Any] | None, **more: Any) -> JoinParams:
    """'mergers=4,probers=2', or the same as a mapping, over the defaults; ValueError says what is
    wrong. With mode=paper the other defaults are the paper's.

    >>> parse_params("mode=paper,bands=2").partitions
    65536
    """
    sizes = _sizes(given) if isinstance(given, str) else dict(given or {})
    names = [field.name for field in fields(JoinParams) if field.name not in more]
    for name, value in sizes.items():
        if name not in names:
            raise ValueError(f"an engine has no {name!r}: choose of {', '.join(names)}")
        if name != "mode" and (not isinstance(value, int) or isinstance(value, bool)):
            raise ValueError(f"{name} must be a whole number, not {value!r}")
    defaults = _PAPER if sizes.get("mode") == "paper" else {}
    return JoinParams(**{**defaults, **sizes, **more})


def _sizes(text: str) -> dict[str, Any]:
    sizes: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            raise ValueError(f"sizes are written like mergers=4, not {part.strip()!r}")
        sizes[name] = int(value) if value.isascii() and value.isdecimal() else value
    return sizes

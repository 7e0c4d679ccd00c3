"""Which gateware this is: a digest of its sources. Needs no Amaranth, so that a host can ask."""

import hashlib
from pathlib import Path

__all__ = ["gateware_digest", "library_directory"]

_HW = Path(__file__).resolve().parents[1]


def gateware_digest(*more: str) -> str:
    """20 hexadecimal digits that change with any source of the gateware, its spec, and `more`.

    `more` are other folders of hw/: "boards".
    """
    text = hashlib.sha256()
    for folder in ("rtl", "spec", *more):
        for path in sorted((_HW / folder).glob("*.py")):
            text.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return text.hexdigest()[:20]


def library_directory() -> Path:
    """Where `python -m sim.build` leaves simulated cores as shared libraries."""
    return _HW.parent / "build" / "rtl"

"""A mutant: one replacement in the text of one file of the gateware, and what it breaks."""

from pathlib import Path
from typing import NamedTuple

__all__ = ["Mutant", "of"]


class Mutant(NamedTuple):
    """`old` becomes `new` in `file` of hw; `breaks` says what goes wrong then."""

    file: str
    old: str
    new: str
    breaks: str

    def applied(self, folder: Path) -> str:
        """The broken text of the file in `folder`; the old text must be there exactly once."""
        text = (folder / self.file).read_text()
        times = text.count(self.old)
        if times != 1:
            raise ValueError(f"{self.file} has {times} times, not once: {self.old!r}")
        return text.replace(self.old, self.new)


def of(file: str, *rows: tuple[str, str, str]) -> list[Mutant]:
    """Mutants of one file, each as its old text, its new text and what it breaks.

    Without a folder it is a file of hw/rtl.
    """
    return [Mutant(file if "/" in file else f"rtl/{file}", *row) for row in rows]

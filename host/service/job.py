"""Job: what a client asks of a worker."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from host.errors import OptionError
from host.spool import Part

__all__ = ["Job", "check_messages", "join_directory"]

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_TYPES: dict[str, type] = {
    "query": str, "join": str, "epoch": int, "worker": int, "workers": int, "state_dir": str,
    "options": Mapping, "routing": str, "parts": tuple, "discard": bool,
    "run": str,
}


def join_directory(state_dir: str, query: str, join: str) -> Path:
    """Where the durable state of one join of one query is."""
    return Path(state_dir) / query / join


@dataclass(frozen=True, kw_only=True)
class Job:
    """One command: worker `worker` of `workers` is to do one micro-batch, an epoch, of a join.

    query, join  names of the query and of the join in it; their state is under state_dir
    run          name of this start of the query, in which an epoch has the same parts always;
                 without a name nothing is promised
    options      as host.options_json.to_plain gives them
    routing      how tuples are dealt: 'round robin', 'random', 'hash' or 'contrand:<subgroups>'
    parts        the files that hold the epoch's rows, in order of arrival
    discard      read the rows and drop them: the empty system that benchmarks compare with
    """

    query: str
    join: str
    epoch: int
    worker: int = 0
    workers: int = 1
    state_dir: str
    options: Mapping[str, Any]
    routing: str = "round robin"
    parts: tuple[Part, ...] = ()
    discard: bool = False
    run: str = ""

    def __post_init__(self) -> None:
        for name, kind in _TYPES.items():
            value = getattr(self, name)
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise OptionError(f"{name} of a job must be {kind.__name__}, not {value!r}")
        for name in ("query", "join"):
            _check_name(name, getattr(self, name))
        for part in self.parts:
            _check_name("part", part.name)
        if self.epoch < 0:
            raise OptionError(f"epoch must be a whole number from 0 on, not {self.epoch}")
        if not 0 <= self.worker < self.workers:
            raise OptionError(f"worker {self.worker} is not one of {self.workers} workers")
        if not Path(self.state_dir).is_absolute():
            raise OptionError(f"state_dir must be an absolute path, not {self.state_dir!r}")

    @property
    def directory(self) -> Path:
        return join_directory(self.state_dir, self.query, self.join)

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "parts": [asdict(part) for part in self.parts]})

    @classmethod
    def from_json(cls, text: Any) -> "Job":
        """The job of a text that anybody may have written; OptionError says what is wrong."""
        try:
            values = json.loads(text)
            parts = tuple(Part(**part) for part in values.pop("parts"))
            return cls(**values, parts=parts)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise OptionError(f"this is not a job: {error}") from None


def _check_name(what: str, name: Any) -> None:
    """Names become names of files and directories."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise OptionError(
            f"the name of a {what} must be up to 128 letters, digits, dots, dashes and "
            f"underscores, and begin with no dot, not {name!r}"
        )


def check_messages(name: Any, messages: Any) -> None:
    """What a client says of a part that is being written: a hidden file, and places in it."""
    if not isinstance(name, str) or not name.startswith(".") or "/" in name:
        raise OptionError(f"{name!r} is no part that is being written")
    if not isinstance(messages, list) or not all(_is_message(one) for one in messages):
        raise OptionError(f"{name!r} does not have messages, as a side, a place and a size each")


def _is_message(one: Any) -> bool:
    whole = isinstance(one, list) and len(one) == 3 and all(type(n) is int for n in one)
    return whole and one[0] in (0, 1) and min(one) >= 0

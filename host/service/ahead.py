"""Ahead: an epoch that is joined while its part is still being written.

Only a head start: what was joined counts once the part is whole, on the disk, and the one that the
epoch is made of. Else the windows are dropped, and made again from the log.
"""

from dataclasses import dataclass, field
from typing import Any

from host.options import JoinOptions
from host.service.answer import Answer
from host.service.epoch_rows import Tables
from host.service.job import Job
from host.spool import Part, Unfinished, messages_of
from hw.spec.windows import RowWindow

__all__ = ["Ahead", "can_run_ahead"]


def can_run_ahead(options: JoinOptions) -> bool:
    """Whether a join's result is the same in whatever order the rows of an epoch are pushed.

    A part has left rows and right rows one after the other, and they arrive side by side.
    """
    ordered = options.order != "none" or options.emit != "pairs"
    return not ordered and not isinstance(options.parsed_window, RowWindow)


@dataclass
class Ahead:
    """What was joined of an epoch so far.

    before  counters of the join when it began
    answer  holds the results, which nobody sees yet
    """

    job: Job
    name: str
    file: Unfinished
    before: dict[str, Any]
    answer: Answer = field(init=False)

    def __post_init__(self) -> None:
        self.answer = Answer(self.job.epoch)

    def goes_on(self, job: Job, name: str) -> bool:
        """Whether a message is about the same attempt to write the same part."""
        return name == self.name and job.epoch == self.job.epoch

    def became(self, job: Job) -> Part | None:
        """The one part of a job, if this is the beginning of it."""
        if job.epoch != self.job.epoch or len(job.parts) != 1 or not any(job.parts[0].rows):
            return None
        [part] = job.parts
        inode, messages = messages_of(job.directory, job.epoch, part)
        known = self.file.messages
        same = inode == self.file.inode and messages[: len(known)] == known
        return part if same else None

    def rest(self, tables: Tables) -> Tables:
        """What of the epoch's rows has not been joined yet."""
        left, right = self.file.rows
        return tables[0].slice(left), tables[1].slice(right)

"""Every error that is raised on purpose: one sentence that names the value and the cure."""

__all__ = [
    "BackendUnavailable",
    "ConditionError",
    "EpochError",
    "EvaluationError",
    "InputError",
    "JoinError",
    "LinkError",
    "OptionError",
    "SchemaError",
    "ServiceError",
    "SnapshotError",
    "StateError",
    "WindowFull",
]


class JoinError(Exception):
    """Anything that ends a join; the command line shows it as one line and exits with 1."""


class OptionError(JoinError):
    """An option has a value that cannot be used."""


class ConditionError(JoinError):
    """The condition cannot be run; the message names the part."""


class SchemaError(JoinError):
    """A batch or a file does not have the columns or types that were announced."""


class InputError(JoinError):
    """A file or stream cannot be read, or its rows break a promise (order of arrival, time)."""


class EvaluationError(JoinError):
    """A residual cannot be evaluated on the values that came (overflow, division by zero)."""


class BackendUnavailable(JoinError):
    """The engine that was asked for is not here; the message says how to get it."""


class WindowFull(JoinError):
    """A subwindow was asked to take more tuples than it holds."""


class SnapshotError(JoinError):
    """A snapshot is damaged, of another version, or of another join."""


class ServiceError(JoinError):
    """A worker daemon cannot be reached, refuses a command, or broke off."""


class EpochError(JoinError):
    """A command is for an epoch that has passed, or that others must come before."""


class StateError(JoinError):
    """A file of a join's durable state is missing, damaged, or of another join."""


class LinkError(JoinError):
    """The cable to a board, or the board, does not do what the link promises."""

"""JoinOptions as plain values that JSON can carry, and back."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pyarrow as pa

from host.errors import OptionError
from host.options import JoinOptions

__all__ = ["from_plain", "to_plain"]

_SCHEMAS = ("left", "right")
_NAMES = tuple(field.name for field in fields(JoinOptions) if field.init)


def to_plain(options: JoinOptions) -> dict[str, Any]:
    """Every option under its name; schemas as Arrow IPC in base64."""
    plain = {name: getattr(options, name) for name in _NAMES}
    for name in _SCHEMAS:
        plain[name] = base64.b64encode(plain[name].serialize()).decode()
    for name, value in plain.items():
        if isinstance(value, Mapping):
            plain[name] = dict(value)
        elif isinstance(value, tuple):
            plain[name] = list(value)
    return plain


def from_plain(plain: Mapping[str, Any], **changed: Any) -> JoinOptions:
    """The options that `to_plain` gave, some of them replaced."""
    unknown = sorted(set(plain) - set(_NAMES))
    if unknown:
        raise OptionError(f"{unknown[0]!r} is not an option of a join")
    missing = [name for name in ("on", "window", *_SCHEMAS) if name not in plain]
    if missing:
        raise OptionError(f"the option {missing[0]!r} of the join is missing")
    schemas = {name: _schema(name, plain[name]) for name in _SCHEMAS}
    return JoinOptions(**{**plain, **schemas, **changed})


def _schema(name: str, text: Any) -> pa.Schema:
    try:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
    except (TypeError, binascii.Error, pa.ArrowInvalid, OSError):
        raise OptionError(f"{name} is not an Arrow schema in base64") from None

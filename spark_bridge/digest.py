"""The name of a join's state: the same after a restart, another for every other join."""

import hashlib
import json
import re
from collections import Counter

from pyspark.sql import DataFrame

from host.options import JoinOptions

__all__ = ["call_number", "join_digest", "normalised"]

#: Options that decide what the result is; the log does not depend on the others.
_MEANING = ("on", "window", "time", "lateness", "emit", "select", "aggregates", "late", "order")
#: What may be another one in the next life of the same query: the numbers of expressions, plans,
#: objects, observations (at the end of their line; our own say nothing) and variables of
#: functions, and how much a micro-batch takes.
_PASSING = re.compile(
    r"#\d+L?|@[0-9a-f]+|plan_id=\d+"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<=CollectMetrics )watersmeet_.*$|(?<=\]), \d+$|(?<=\blambda \w)_\d+"
    r"|(?i:\b(max|min)\w+PerTrigger=[^,\]]*(, )?)",
    re.MULTILINE,
)
_CALLS: Counter[str] = Counter()


def call_number(join: str) -> int:
    """1 for the first join of that name in this program, 2 for the next one."""
    _CALLS[join] += 1
    return _CALLS[join]


def join_digest(options: JoinOptions, left: DataFrame, right: DataFrame) -> str:
    """16 hex digits out of the options, the schemas and the inputs' analysed plans."""
    said = {name: getattr(options, name) for name in _MEANING}
    said["schemas"] = [str(options.left), str(options.right)]
    said["plans"] = [normalised(frame) for frame in (left, right)]
    text = json.dumps(said, sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def normalised(frame: DataFrame) -> str:
    """A frame's analysed plan, whole, without what changes from session to session."""
    plan = frame._jdf.queryExecution().analyzed()
    # verbose, no suffix, fields without end, neither operator numbers nor output columns
    return _PASSING.sub("", str(plan.treeString(True, False, 1 << 30, False, False)))

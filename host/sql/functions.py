"""Which SQL functions and types there are, by sqlglot's names for them, and why others are not."""

from sqlglot import exp

from host.errors import ConditionError
from host.sql.text import sql_of
from host.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    SqlType,
    decimal,
    timestamp,
)

__all__ = ["FUNCTIONS", "TIME_PARTS", "arguments_of", "refusal", "type_of_sql"]

#: Class of sqlglot -> name of host.sql.calls and where its arguments are.
FUNCTIONS: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Add: ("+", ("this", "expression")),
    exp.Sub: ("-", ("this", "expression")),
    exp.Mul: ("*", ("this", "expression")),
    exp.Div: ("/", ("this", "expression")),
    exp.Mod: ("%", ("this", "expression")),
    exp.IntDiv: ("div", ("this", "expression")),
    exp.Neg: ("neg", ("this",)),
    exp.Abs: ("abs", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.Pow: ("power", ("this", "expression")),
    exp.Sign: ("sign", ("this",)),
    exp.IsNan: ("isnan", ("this",)),
    exp.Least: ("least", ("this", "expressions")),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.Upper: ("upper", ("this",)),
    exp.Lower: ("lower", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Concat: ("concat", ("expressions",)),
    exp.DPipe: ("concat", ("this", "expression")),
    exp.Year: ("year", ("this",)),
    exp.Month: ("month", ("this",)),
    exp.Day: ("day", ("this",)),
    exp.DayOfMonth: ("day", ("this",)),
    exp.Hour: ("hour", ("this",)),
    exp.Minute: ("minute", ("this",)),
    exp.Second: ("second", ("this",)),
}

#: What EXTRACT takes from a time, each a function by itself.
TIME_PARTS = ("year", "month", "day", "hour", "minute", "second")

#: Marks of sqlglot's own that change nothing here.
_MARKS = {"safe", "typed", "coalesce", "ignore_nulls", "is_nvl", "is_null", "negate"}

_TYPES = {
    "TINYINT": TINYINT,
    "SMALLINT": SMALLINT,
    "INT": INT,
    "BIGINT": BIGINT,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
    "DATE": DATE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "BINARY": BINARY,
}


def arguments_of(node: exp.Expr, keys: tuple[str, ...]) -> list[exp.Expr]:
    """The arguments under `keys`; one that lies elsewhere is refused, not overlooked."""
    for key, value in node.args.items():
        if value and key not in keys and key not in _MARKS:
            raise refusal(node)
    found: list[exp.Expr] = []
    for key in keys:
        value = node.args[key]
        found += value if isinstance(value, list) else [value]
    # YEAR(x) and the like come with a conversion to a date of sqlglot's own around x.
    return [arg.this if isinstance(arg, exp.TsOrDsToDate) else arg for arg in found]


def type_of_sql(written: exp.DataType, source: SqlType, zone: str) -> SqlType | None:
    """The type that a CAST of `source` names; timestamps keep the unit and zone they have."""
    name = written.this.name
    if name == "DECIMAL":
        numbers = [int(param.name) for param in written.expressions]
        precision, scale = (numbers + [10, 0][len(numbers):])[:2]
        return decimal(precision, scale) if 0 <= scale <= precision <= 38 else None
    if name in ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"):
        type = timestamp("us", None if name == "TIMESTAMPNTZ" else source.zone or zone)
        unit_ns = min(type.unit_ns, source.unit_ns or type.unit_ns)
        return SqlType(type.kind, unit_ns=unit_ns, zone=type.zone)
    return _TYPES.get(name)


def refusal(node: exp.Expr) -> ConditionError:
    """Why a part of a condition cannot be run."""
    text = sql_of(node)
    if isinstance(node, exp.Anonymous):
        return ConditionError(f"`{text}` calls {node.name.upper()}, which is no function here")
    if isinstance(node, exp.Query | exp.Subquery | exp.Exists) or node.args.get("query"):
        why = "a subquery"
    elif isinstance(node, exp.Window):
        why = "a window function"
    elif isinstance(node, exp.AggFunc):
        why = "an aggregate"
    else:
        return ConditionError(f"`{text}` is not supported in a condition")
    return ConditionError(f"`{text}` is {why}, and a condition sees one pair at a time")

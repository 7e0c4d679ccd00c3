"""How messages and plans quote a part of a condition."""

from sqlglot import exp

__all__ = ["sql_of"]


def sql_of(node: exp.Expr) -> str:
    """The node as Spark SQL, in one line and without comments."""
    return node.sql("spark", comments=False)

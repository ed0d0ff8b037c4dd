"""The parts of a query that mean the same in Flink and in Spark; every other part is rejected."""

from __future__ import annotations

from sqlglot import exp

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.sql.query_text import Flink, place_of
from pyspark_upsert_kafka.sql.statements import Query

_TWO = frozenset({"this", "expression"})
_ONE = frozenset({"this"})
_NONE: frozenset[str] = frozenset()
_LIST = frozenset({"expressions"})
_SET_OPERATION = _TWO | {"distinct", "with_", "order", "limit", "offset"}

_KNOWN: dict[type[exp.Expr], frozenset[str]] = {
    # queries
    exp.Select: _LIST | {
        "from_", "joins", "where", "group", "having", "distinct", "order", "limit", "offset", "with_",
    },
    exp.From: _ONE, exp.Where: _ONE, exp.Having: _ONE, exp.Distinct: _LIST,
    exp.Group: _LIST | {"grouping_sets", "cube", "rollup"},
    exp.GroupingSets: _LIST, exp.Cube: _LIST, exp.Rollup: _LIST,
    exp.Order: _LIST, exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}), exp.Offset: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind"}),
    exp.Table: frozenset({"this", "db", "catalog", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Subquery: frozenset({"this", "alias", "with_", "order", "limit", "offset"}),
    exp.Values: frozenset({"expressions", "alias"}), exp.Tuple: _LIST,
    exp.Unnest: frozenset({"expressions", "alias", "offset"}),
    exp.With: _LIST, exp.CTE: frozenset({"this", "alias"}),
    exp.Union: _SET_OPERATION, exp.Intersect: _SET_OPERATION, exp.Except: _SET_OPERATION,
    # names and literals
    exp.Alias: frozenset({"this", "alias"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}), exp.Dot: _TWO,
    exp.Identifier: frozenset({"this", "quoted"}), exp.Star: _NONE, exp.Var: _ONE,
    exp.Literal: frozenset({"this", "is_string"}), exp.Boolean: _ONE, exp.Null: _NONE,
    exp.Interval: frozenset({"this", "unit"}),
    # conditions
    exp.And: _TWO, exp.Or: _TWO, exp.Not: _ONE, exp.Paren: _ONE,
    exp.EQ: _TWO, exp.NEQ: _TWO, exp.GT: _TWO, exp.GTE: _TWO, exp.LT: _TWO, exp.LTE: _TWO,
    exp.NullSafeEQ: _TWO, exp.NullSafeNEQ: _TWO, exp.Is: _TWO, exp.Like: _TWO | {"negate"},
    exp.Between: frozenset({"this", "low", "high"}),
    exp.In: frozenset({"this", "expressions", "query"}), exp.Exists: _ONE,
    exp.Case: frozenset({"this", "ifs", "default"}), exp.If: frozenset({"this", "true", "false"}),
    # values
    exp.Add: _TWO, exp.Sub: _TWO, exp.Mul: _TWO, exp.Div: _TWO, exp.Mod: _TWO, exp.Neg: _ONE,
    exp.DPipe: _TWO | {"safe"}, exp.Bracket: frozenset({"this", "expressions"}), exp.Array: _LIST,
    exp.Cast: frozenset({"this", "to"}), exp.TryCast: frozenset({"this", "to", "requires_string", "safe"}),
    exp.DataType: frozenset({"this", "expressions", "nested", "kind"}), exp.DataTypeParam: _ONE,
    exp.ColumnDef: frozenset({"this", "kind"}),
    # functions
    exp.Coalesce: frozenset({"this", "expressions"}), exp.Extract: _TWO,
    exp.Trim: frozenset({"this", "position", "expression"}),
    exp.StrPosition: frozenset({"this", "substr"}), exp.Substring: frozenset({"this", "start", "length"}),
    exp.Floor: frozenset({"this", "to"}), exp.Ceil: frozenset({"this", "to"}),
    exp.CurrentDate: _NONE, exp.CurrentTimestamp: _NONE,
    exp.Count: frozenset({"this", "big_int"}), exp.Sum: _ONE, exp.Avg: _ONE, exp.Min: _ONE, exp.Max: _ONE,
    exp.Filter: _TWO, exp.Anonymous: frozenset({"this", "expressions"}), exp.Kwarg: _TWO,
    exp.Window: frozenset({"this", "partition_by", "order", "over", "spec"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
}  # fmt: skip
"""Each kind of node, and those of its parts that are understood."""

_SENTENCES: dict[type[exp.Expr], str] = {
    exp.Lateral: "LATERAL is not supported: Spark has no table functions of Flink. Use Python for this step.",
    exp.Escape: "ESCAPE is not supported: use POSITION, or LIKE without it.",
}


def check_parts(query: Query) -> None:
    """Rejects the parts of a query that are not known to mean the same in Spark.

    Args:
        query: The query as it was read.

    Raises:
        OptionError: There is such a part; the text gives line and column.
    """
    for node in query.tree.walk(bfs=False):
        unknown = _unknown_part(node)
        if unknown is not None:
            raise place_in_query(unknown, query).error(_sentence(unknown))
        if isinstance(node, exp.Like) and _has_backslash(node.expression):
            raise place_in_query(node, query).error(
                "a backslash in LIKE escapes in Spark, and does not in Flink: use POSITION or '='."
            )


def place_in_query(node: exp.Expr, query: Query) -> Place:
    """The place of a part of a query; the place of the query if the part has none."""
    return place_of(node, query.script) or query.place


def shown(node: exp.Expr) -> str:
    """The text of a part of a query; a long text is shortened."""
    text = node.sql(Flink, comments=False)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _unknown_part(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.With) and node.args.get("recursive"):
        return node
    parts = _KNOWN.get(type(node))
    if parts is None:
        return node
    for name, value in node.args.items():
        if name not in parts and value not in (None, False, []):
            first = value[0] if isinstance(value, list) else value
            return first if isinstance(first, exp.Expr) else node
    return None


def _sentence(node: exp.Expr) -> str:
    for kind, sentence in _SENTENCES.items():
        if isinstance(node, kind) or node.find(kind):
            return sentence
    return f"'{shown(node)}' is not known to mean the same in Spark as in Flink, so it is not run."


def _has_backslash(pattern: exp.Expr) -> bool:
    return not isinstance(pattern, exp.Literal) or "\\" in pattern.name

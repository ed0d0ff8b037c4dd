"""``CAST``: the pairs of types for which Flink and Spark give the same result."""

from __future__ import annotations

from sqlglot import exp

from pyspark_upsert_kafka.sql.flink_query import Query, place_in_query, shown
from pyspark_upsert_kafka.sql.sql_types import IN_SPARK, NESTED, TEXTS, name_of, parts_of

_NUMBER, _TEXT, _TIME = "number", "text", "time"

_FAMILIES = {
    "TINYINT": _NUMBER, "SMALLINT": _NUMBER, "INT": _NUMBER, "BIGINT": _NUMBER, "DECIMAL": _NUMBER,
    "FLOAT": _NUMBER, "DOUBLE": _NUMBER, "TEXT": _TEXT, "VARCHAR": _TEXT, "CHAR": _TEXT,
    "BOOLEAN": "boolean", "DATE": "date", "TIMESTAMPNTZ": _TIME, "TIMESTAMPTZ": _TIME,
    "TIMESTAMPLTZ": _TIME, "TIMESTAMP": _TIME, "BINARY": "bytes", "VARBINARY": "bytes", "NULL": "null",
}  # fmt: skip

_SAME = {
    (_NUMBER, _NUMBER), (_NUMBER, _TEXT), (_TEXT, _NUMBER), (_NUMBER, "boolean"), ("boolean", _NUMBER),
    (_TEXT, "boolean"), ("boolean", _TEXT), (_TEXT, "date"), ("date", _TEXT), (_TEXT, _TIME), ("date", _TIME),
    (_TIME, "date"), (_TIME, _TIME), (_TEXT, _TEXT), ("boolean", "boolean"), ("date", "date"),
    ("bytes", "bytes"), ("bytes", _TEXT), (_TEXT, "bytes"),
}  # fmt: skip

_IN_SPARK = {
    "TEXT": "STRING", "VARCHAR": "STRING", "VARBINARY": "BINARY", "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMPLTZ": "TIMESTAMP",
}  # fmt: skip
_ONE_LONG = ("CHAR", "BINARY")
"""Without a length they hold one character or byte in Flink."""

_WIDER = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_CUT = {"0": "SECOND", "3": "MILLISECOND"}


def cast_of_flink(node: exp.Expr, source: str, query: Query) -> exp.Expr:
    """The cast in Spark that has the result of Flink.

    Args:
        node: A ``CAST`` or ``TRY_CAST``.
        source: The name of the type that is cast.
        query: The query as it was read.

    Raises:
        OptionError: The result is not known to be the same; the text gives line and column.
    """
    place = place_in_query(node, query)
    name, digits = name_of(node.args["to"])
    if name in NESTED:
        return _nested(node, query)
    family = _FAMILIES.get(name)
    if family is None or name in _ONE_LONG or (digits and family != _TIME and name != "DECIMAL"):
        raise place.error(
            f"'{shown(node)}': expected a type without length, such as STRING, BIGINT, DECIMAL(10, 2), TIMESTAMP(3) or DATE."
        )
    if source != "NULL" and (_FAMILIES.get(source), family) not in _SAME:
        hint = " Use DATE_FORMAT." if _FAMILIES.get(source) == _TIME and family == _TEXT else ""
        raise place.error(
            f"'{shown(node)}' casts {_in_words(source)}, which is not known to give the same in Spark as in Flink.{hint}"
        )
    if isinstance(node, exp.TryCast) and _may_fail(source, name):
        raise place.error(
            f"'{shown(node)}': what TRY_CAST of {source} makes NULL is not the same in Spark as in Flink. Use CAST: what cannot be cast fails the query then."
        )
    made = _made(node, exp.DataType.build(_in_spark(name, digits), dialect="spark"))
    if source == "BOOLEAN" and family == _TEXT:  # TRUE in Flink, true in Spark
        return _marked(
            exp.Cast(this=exp.Upper(this=made), to=exp.DataType.build("STRING", dialect="spark"))
        )
    if family == _TIME and digits not in ([], ["6"]):
        return _cut(made, digits, query)
    return made


def _nested(node: exp.Expr, query: Query) -> exp.Expr:
    """A cast to an array, a map or a row; its parts may change only between types that are cast the same in both."""
    to, source = node.args["to"], None if isinstance(node.this, exp.Null) else node.this.type
    if isinstance(node, exp.TryCast) or (source is not None and not _is_same_within(source, to)):
        raise place_in_query(node, query).error(
            f"'{shown(node)}': within ARRAY, MAP and ROW, values are cast to their own type or to another number only. "
            "CAST the others before."
        )
    return _made(node, _nested_in_spark(to))


def _is_same_within(source: exp.DataType, to: exp.DataType) -> bool:
    name, digits = name_of(to)
    if name in NESTED:
        pairs = list(zip(parts_of(source), parts_of(to), strict=False))
        is_one_kind = source.this.name == name and len(parts_of(source)) == len(parts_of(to))
        return is_one_kind and all(_is_same_within(one, other) for one, other in pairs)
    family = _FAMILIES.get(name)
    if name in _ONE_LONG or (digits and name != "DECIMAL" and digits != ["6"]):
        return False
    is_number = family == _NUMBER and _FAMILIES.get(source.this.name) == _NUMBER
    is_text = family == _TEXT and source.this.name in TEXTS
    own = exp.DataType.build(_in_spark(name, digits), dialect="spark")
    return is_number or is_text or source.this.name in ("NULL", own.this.name)


def _nested_in_spark(to: exp.DataType) -> exp.DataType:
    name, digits = name_of(to)
    if name not in NESTED:
        return exp.DataType.build(_in_spark(name, digits), dialect="spark")
    made = to.copy()
    parts: list[exp.Expr] = []
    for part in to.expressions:
        if isinstance(part, exp.ColumnDef):
            kind = _nested_in_spark(part.args["kind"])
            parts.append(exp.ColumnDef(this=part.this.copy(), kind=kind))
        else:
            parts.append(_nested_in_spark(part))
    made.set("expressions", parts)
    return made


def _may_fail(source: str, target: str) -> bool:
    """Whether a cast can fail; which values fail is not the same in Flink."""
    if target in _WIDER:
        narrower = _WIDER[: _WIDER.index(target) + 1]
        return source not in (*narrower, "BOOLEAN", "NULL")
    return _FAMILIES.get(source) == _TEXT and _FAMILIES[target] in ("boolean", "date", _TIME)


def _in_spark(name: str, digits: list[str]) -> str:
    if name == "DECIMAL":
        return f"DECIMAL({', '.join(digits or ['10', '0'])})"
    return _IN_SPARK.get(name, name)


def _made(node: exp.Expr, to: exp.DataType) -> exp.Expr:
    made = node.copy()
    made.set("to", to)
    return _marked(made)


def _marked(node: exp.Expr) -> exp.Expr:
    node.meta[IN_SPARK] = True
    return node


def _cut(made: exp.Expr, digits: list[str], query: Query) -> exp.Expr:
    """A time truncated to whole seconds or milliseconds."""
    unit = _CUT.get(digits[0])
    if unit is None:
        raise place_in_query(made, query).error("expected a time with 0, 3 or 6 digits.")
    call = exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string(unit), made])
    return _marked(exp.Cast(this=call, to=made.args["to"].copy()))


def _in_words(name: str) -> str:
    return "a value whose type is not known" if name == "UNKNOWN" else name

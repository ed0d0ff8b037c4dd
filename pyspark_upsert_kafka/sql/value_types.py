"""Values in the types that they have in Flink: arithmetic, rounding, ``SUM`` and ``AVG``, casts, elements of arrays and maps.

In Flink a whole number divided by another is a whole number, ``SUM`` and ``AVG`` have the type of what they sum, and a boolean
as text is ``TRUE``; in Spark all of that is different.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from pyspark_upsert_kafka.sql.flink_query import Query, place_in_query, shown
from pyspark_upsert_kafka.sql.function_calls import change_of_call, check_types
from pyspark_upsert_kafka.sql.sql_types import (
    APPROXIMATE,
    IN_SPARK,
    NESTED,
    TEXTS,
    WHOLE,
    decimal_digits,
    kind_of,
    parts_of,
    spark_cast,
)

_DIGITS = {
    "TINYINT": "DECIMAL(3, 0)", "SMALLINT": "DECIMAL(5, 0)", "INT": "DECIMAL(10, 0)", "BIGINT": "DECIMAL(19, 0)",
}  # fmt: skip
"""Whole numbers as decimals of Flink; Spark takes a literal for one of its own digits only."""
_UNITS = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})

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

_CUT = {"0": "SECOND", "3": "MILLISECOND"}

_Change = Callable[[exp.Expr, Query], None]


def with_types_of_flink(tree: exp.Expr, schema: MappingSchema, query: Query) -> exp.Expr:
    """Gives each value of a query the type that it has in Flink; the tree is changed.

    Args:
        tree: The query, each of its columns with its table.
        schema: The columns of its tables.
        query: The query as it was read.

    Raises:
        OptionError: A type is not known, or a cast is not known to give the same; the text gives line and column.
    """
    for at, changes in enumerate(_in_order(tree) or [[]]):
        annotate_types(tree, schema=schema, dialect="spark", overwrite_types=True)
        if at == 0:
            check_types(tree.walk(), query)
        for node, change in changes:
            change(node, query)
    return tree


def _in_order(tree: exp.Expr) -> list[list[tuple[exp.Expr, _Change]]]:
    """The nodes to change, in lists: each node is in a later list than the nodes on which its type depends.

    sqlglot finds types for a whole query at once, which is slow. So this is done once per list, and not once per node.
    """
    found: list[list[tuple[exp.Expr, _Change]]] = []

    def add(node: exp.Expr, at: int) -> int:
        """Adds a node and those in it to the lists from ``at`` on; returns the list for nodes that depend on it."""
        parts, first = list(node.iter_expressions()), _FIRST.get(type(node), ())
        for part in parts:
            if part.arg_key in first:
                at = max(at, add(part, at))
        at = max([at, *(add(part, at) for part in parts if part.arg_key not in first)])
        change = _change_of(node)
        if change is None:
            return at
        if at == len(found):
            found.append([])
        found[at].append((node, change))
        return at + 1

    add(tree, 0)
    return found


def _type_unknown(node: exp.Expr, query: Query) -> Exception:
    """The error about an argument whose type is not known, or not supported by the function."""
    return place_in_query(node, query).error(
        f"the type of what '{shown(node)}' takes is not known, or not one that Flink takes there: cast it."
    )


def _divide(node: exp.Expr, query: Query) -> None:
    kinds = {kind_of(node.this), kind_of(node.expression)}
    if kinds <= {*WHOLE}:
        widest = max(kinds, key=WHOLE.index)
        whole = exp.IntDiv(this=node.this.copy(), expression=exp.paren(node.expression.copy()))
        node.replace(spark_cast(whole, widest))
    elif kinds <= {*WHOLE, "FLOAT"}:
        _align(node, query)
        node.meta[IN_SPARK] = True
        node.replace(spark_cast(node.copy(), "FLOAT"))
    elif kinds <= {*WHOLE, "DECIMAL"}:
        _align(node, query)
    elif not kinds <= {*WHOLE, *APPROXIMATE, "DECIMAL"}:
        raise place_in_query(node, query).error(
            f"the type of '{shown(node)}' is not known, and division depends on it: cast both of its sides."
        )


def _align(node: exp.Expr, _: Query) -> None:
    """Casts whole numbers beside a DECIMAL or a FLOAT as Flink does: digits and type of the result depend on it."""
    sides = (node.this, node.expression)
    kinds = {kind_of(side) for side in sides}
    for side in sides:
        whole = kind_of(side)
        if whole in WHOLE and kinds & {"DECIMAL", "FLOAT"}:
            side.replace(spark_cast(side.copy(), "FLOAT" if "FLOAT" in kinds else _DIGITS[whole]))


def _modulo(node: exp.Expr, query: Query) -> None:
    if {kind_of(node.this), kind_of(node.expression)} & {*APPROXIMATE}:
        raise _type_unknown(node, query)
    _align(node, query)


def _round(node: exp.Expr, query: Query) -> None:
    unit = node.args.get("to")
    kind = kind_of(node.this)
    if unit is not None:
        name = unit.name.upper()
        if isinstance(node, exp.Ceil) or name not in _UNITS:
            raise place_in_query(node, query).error(
                f"{shown(node)} is not supported: there is FLOOR to {', '.join(sorted(_UNITS))}."
            )
        cut = exp.Anonymous(
            this="date_trunc", expressions=[exp.Literal.string(name), node.this.copy()]
        )
        if kind not in ("TIMESTAMPTZ", "TIMESTAMPNTZ"):
            raise _type_unknown(node, query)
        node.replace(spark_cast(cut, "TIMESTAMP" if kind == "TIMESTAMPTZ" else "TIMESTAMP_NTZ"))
    elif kind in (*WHOLE, *APPROXIMATE):
        node.meta[IN_SPARK] = True
        node.replace(spark_cast(node.copy(), kind))
    elif kind != "DECIMAL":
        raise _type_unknown(node, query)


def _change_of(node: exp.Expr) -> _Change | None:
    own = None if IN_SPARK in node.meta else _CHANGES.get(type(node))
    return change_of_call(node) or own


def _with_type_of_sum(node: exp.Expr, query: Query) -> None:
    """Casts ``SUM`` to the type of its argument; raises OptionError if that type is not known."""
    argument = _argument(node)
    kind = kind_of(argument)
    if kind in (*WHOLE, *APPROXIMATE):
        _replace_call(node, lambda call: spark_cast(call, kind))
    elif kind == "DECIMAL":
        digits = decimal_digits(argument)
        if digits is None:
            raise place_in_query(node, query).error(
                f"the digits of what '{shown(node)}' takes are not known: CAST it AS DECIMAL(p, s)."
            )
        _replace_call(node, lambda call: spark_cast(call, f"DECIMAL(38, {digits[1]})"))
    else:
        raise _type_unknown(node, query)


def _with_type_of_average(node: exp.Expr, query: Query) -> None:
    """Casts ``AVG`` to the type of its argument; raises OptionError if that type is not known."""
    kind = kind_of(_argument(node))
    if kind == "DECIMAL":
        raise place_in_query(node, query).error(
            "AVG of a DECIMAL has other digits in Spark: write SUM(x) / COUNT(x), or cast to DOUBLE."
        )
    if kind in WHOLE:
        _replace_call(node, lambda call: spark_cast(_whole_average(call), kind))
    elif kind in APPROXIMATE:
        _replace_call(node, lambda call: spark_cast(call, kind))
    else:
        raise _type_unknown(node, query)


def _argument(node: exp.Expr) -> exp.Expr:
    inner: exp.Expr = node.this
    return inner.expressions[0] if isinstance(inner, exp.Distinct) else inner


def _whole_average(call: exp.Expr) -> exp.Expr:
    """``SUM`` divided by ``COUNT``, truncated to a whole number."""
    return exp.IntDiv(this=_instead(call, exp.Sum), expression=_instead(call, exp.Count))


def _instead(call: exp.Expr, kind: type[exp.Expr]) -> exp.Expr:
    """A copy of the call with another aggregate in the place of AVG."""
    copy = call.copy()
    for average in [*copy.find_all(exp.Avg)]:
        made = kind(this=average.this.copy())
        if average is copy:
            return made
        average.replace(made)
    return copy


def _replace_call(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> None:
    """Changes a call of an aggregate with its FILTER and its OVER."""
    node.meta[IN_SPARK] = True
    call = node
    while isinstance(call.parent, (exp.Filter, exp.Window)) and call.arg_key == "this":
        call = call.parent
    call.replace(change(call.copy()))


def _check_array(node: exp.Expr, query: Query) -> None:
    """Rejects an array, or the keys or values of a map, whose elements have different types, or unknown ones.

    Elements of a type that sqlglot does not find are cast to it: what it takes the array for depends on that.
    """
    kinds = {kind_of(each) for each in node.expressions} - {"NULL"}
    kinds = {"TEXT" if kind in TEXTS else kind for kind in kinds}
    if "UNKNOWN" in kinds or not kinds or (len(kinds) > 1 and not kinds <= {*WHOLE}):
        raise place_in_query(node, query).error(
            f"the elements of '{shown(node)}' have no type in common that is the same in Spark: CAST them to one."
        )
    for each in node.expressions:
        kind = kind_of(each)
        if kind in APPROXIMATE and each.type is not None and each.type.this.name != kind:
            each.replace(spark_cast(each.copy(), kind))


def _take_element(node: exp.Expr, query: Query) -> None:
    """An element of an array, counted from 1, or of a map; NULL where there is none."""
    index = node.expressions[0]
    if len(node.expressions) != 1:
        raise place_in_query(node, query).error(f"'{shown(node)}': expected one index or key.")
    value: exp.Expr = exp.Anonymous(
        this="try_element_at", expressions=[node.this.copy(), index.copy()]
    )
    kind = node.this.type
    if kind is None or kind.this.name not in ("ARRAY", "MAP"):
        raise place_in_query(node, query).error(
            f"the type of what '{shown(node)}' takes an element of is not known: CAST it AS ARRAY<...> or MAP<..., ...>."
        )
    if kind.this.name == "ARRAY" and not _is_from_1(index):
        raise place_in_query(node, query).error(
            f"'{shown(node)}': an index is a whole number from 1 on, written as a number: Spark counts others from the end."
        )
    node.replace(spark_cast(value, kind.expressions[-1].sql("spark")))


def _is_from_1(index: exp.Expr) -> bool:
    return isinstance(index, exp.Literal) and index.is_int and int(index.name) > 0


def _cast(node: exp.Expr, query: Query) -> None:
    node.replace(_cast_of_flink(node, query))


def _cast_of_flink(node: exp.Expr, query: Query) -> exp.Expr:
    """The cast in Spark that has the result of Flink."""
    place, source = place_in_query(node, query), kind_of(node.this)
    name, digits = _name_of(node.args["to"])
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
    name, digits = _name_of(to)
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


def _name_of(kind: exp.DataType) -> tuple[str, list[str]]:
    """The name of a type that a query names, and the numbers in its brackets."""
    name = str(kind.this.name)
    return name, [] if name in NESTED else [each.name for each in kind.expressions]


def _nested_in_spark(to: exp.DataType) -> exp.DataType:
    name, digits = _name_of(to)
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
    if target in WHOLE:
        narrower = WHOLE[: WHOLE.index(target) + 1]
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


_FIRST: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Select: ("from_", "joins", "laterals"), exp.Join: ("this",), exp.Filter: ("expression",),
    exp.Window: ("partition_by", "order"),
}  # fmt: skip
"""Parts on which the types of the others depend, or that are replaced together with the others."""

_CHANGES: dict[type[exp.Expr], _Change] = {
    exp.Add: _align, exp.Sub: _align, exp.Mul: _align, exp.Mod: _modulo,
    exp.Div: _divide, exp.Sum: _with_type_of_sum, exp.Avg: _with_type_of_average, exp.Floor: _round, exp.Ceil: _round,
    exp.Cast: _cast, exp.TryCast: _cast, exp.Array: _check_array, exp.Bracket: _take_element,
}  # fmt: skip

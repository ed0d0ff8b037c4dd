"""Flink's functions that give tables: windows of time, ``TUMBLE`` and ``HOP``, by Spark's ``window``; ``UNNEST`` by its lateral views.

Flink has windows as table functions, which add ``window_start``, ``window_end`` and ``window_time`` to a table's columns, and
as functions in ``GROUP BY``. In Spark the grouping itself must be by ``window``: only then is a window's state dropped when
the watermark has passed it. ``UNNEST`` gives rows of the elements of an array, the fields of its rows, or the entries of a map.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from pyspark_upsert_kafka.sql.flink_query import Query, called, place_in_query, shown, table_named
from pyspark_upsert_kafka.sql.sql_types import IN_SPARK, kind_of, parts_of, spark_cast

_WINDOW = "window"
_KINDS = ("TUMBLE", "HOP")
_NAMED = {"TUMBLE": ("DATA", "TIMECOL", "SIZE"), "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE")}
_BOUNDS = {
    "START": "start",
    "END": "end",
    "ROWTIME": "time",
}
_UNITS = frozenset({"SECOND", "MINUTE", "HOUR", "DAY", "WEEK"})
_COLUMNS = {"window_start": "start", "window_end": "end", "window_time": "time"}
_SHAPE = "expected TABLE(TUMBLE(TABLE name, DESCRIPTOR(column), INTERVAL '10' MINUTE)), or HOP with the slide before the size."


def with_window_functions(query: Query) -> exp.Expr:
    """A copy of the query's tree in which windows are Spark's.

    Raises:
        OptionError: A window is written in a way that is not known; the text gives line and column.
    """
    tree = query.tree.copy()
    for table in [*tree.find_all(exp.Table)]:
        if isinstance(table.this, exp.Anonymous):
            table.replace(_windowed(table, query))
    for call in [*tree.find_all(exp.Anonymous)]:
        kind, _, bound = call.name.upper().partition("_")
        if kind in _KINDS and (not bound or bound in _BOUNDS):
            window = _window(kind, call.expressions[:1], call.expressions[1:], call, query)
            call.replace(_bound(window, _BOUNDS[bound]) if bound else window)
    return tree


def group_by_windows(tree: exp.Expr) -> None:
    """Groups by ``window`` where a query groups by the bounds of a table function's windows.

    Args:
        tree: The query, each of its columns with its table; it is changed.
    """
    for select in [*tree.find_all(exp.Select)]:
        for table in _windows_of(select):
            _group(select, table)


def _windowed(table: exp.Table, query: Query) -> exp.Expr:
    """The table of a window function: its columns, and those of the window."""
    place = place_in_query(table, query)
    call = called(table)
    if call is None:
        raise place.error(f"table functions are not supported but for windows: {_SHAPE}")
    kind = call.name.upper()
    if kind not in _KINDS:
        raise place.error(
            f"the table function {kind} is not supported: there are TUMBLE, HOP, FROM_CHANGELOG and TO_CHANGELOG."
        )
    data, time, *sizes = _arguments(kind, call, query)
    is_descriptor = isinstance(time, exp.Anonymous) and time.name.upper() == "DESCRIPTOR"
    if not isinstance(data, exp.Column) or not is_descriptor or len(time.expressions) != 1:
        raise place.error(_SHAPE)
    window = _window(kind, time.expressions, sizes, call, query)
    columns = [exp.alias_(_bound(window, bound), name) for name, bound in _COLUMNS.items()]
    select = exp.Select(expressions=[exp.Star(), *columns]).from_(table_named(data), copy=False)
    select.meta[_WINDOW] = window
    return exp.Subquery(this=select, alias=table.args.get("alias") or _alias(kind))


def _alias(kind: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(kind.lower()))


def _arguments(kind: str, call: exp.Anonymous, query: Query) -> list[exp.Expr]:
    """The arguments of a table function in their order, whether they are named or not."""
    names = _NAMED[kind]
    given = list(call.expressions)
    if any(isinstance(each, exp.Kwarg) for each in given):
        by_name = {
            each.name.upper(): each.expression for each in given if isinstance(each, exp.Kwarg)
        }
        given = [by_name[name] for name in names if name in by_name]
        if len(given) != len(call.expressions):
            given = []
    if len(given) != len(names):
        raise place_in_query(call, query).error(f"{kind} takes {', '.join(names)}: {_SHAPE}")
    return given


def _window(
    kind: str,
    time: list[exp.Expr],
    sizes: list[exp.Expr],
    call: exp.Anonymous,
    query: Query,
) -> exp.Expr:
    """Spark's ``window``, whose size comes before the slide."""
    place = place_in_query(call, query)
    if len(sizes) != len(_NAMED[kind]) - 2 or not time or not isinstance(time[0], exp.Column):
        raise place.error(f"{kind} takes a column and {len(_NAMED[kind]) - 2} intervals: {_SHAPE}")
    durations = [exp.Literal.string(_duration(size, query)) for size in sizes[::-1]]
    window = exp.Anonymous(this=_WINDOW, expressions=[time[0].copy(), *durations])
    window.meta.update({**call.meta, IN_SPARK: True})
    return window


def _duration(interval: exp.Expr, query: Query) -> str:
    unit = interval.text("unit").upper().removesuffix("S")
    is_known = isinstance(interval, exp.Interval) and unit in _UNITS
    if not is_known or not interval.name.isdecimal() or int(interval.name) == 0:
        raise place_in_query(interval, query).error(
            f"expected an interval of one unit, such as INTERVAL '10' MINUTE; known are {', '.join(sorted(_UNITS))}."
        )
    return f"{interval.name} {unit.lower()}s"


def bounds_of(window: exp.Expr) -> list[exp.Expr]:
    """The values that tell a window from others: its start, its end and the last time in it."""
    return [_bound(window, bound) for bound in _COLUMNS.values()]


def is_window(node: exp.Expr) -> bool:
    """Whether it is a call of Spark's ``window``."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == _WINDOW


def _bound(window: exp.Expr, bound: str) -> exp.Expr:
    """The start or the end of a window, or the last time in it."""
    field = exp.Dot(
        this=window.copy(),
        expression=exp.to_identifier("start" if bound == "start" else "end", quoted=True),
    )
    value: exp.Expr = field
    if bound == "time":  # as in Flink
        step = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("MILLISECOND"))
        value = exp.Sub(this=field, expression=step)
    return spark_cast(value, "TIMESTAMP")


def _windows_of(select: exp.Select) -> list[exp.Subquery]:
    """The table functions that a query reads."""
    sources = (select.args.get("from_"), *select.args.get("joins", ()))
    tables = [source.this for source in sources if source is not None]
    return [each for each in tables if isinstance(each, exp.Subquery) and _WINDOW in each.this.meta]


def _group(select: exp.Select, table: exp.Subquery) -> None:
    group, alias = select.args.get("group"), table.alias
    if group is None:
        return
    bounds = {each.name for each in group.expressions if _is_bound(each, alias)}
    if not {"window_start", "window_end"} <= bounds:
        return
    window = table.this.meta[_WINDOW].copy()
    window.expressions[0].replace(exp.column(window.expressions[0].name, alias, quoted=True))
    kept = [each for each in group.expressions if not _is_bound(each, alias)]
    group.set("expressions", [window, *kept])
    for column in [*select.find_all(exp.Column)]:
        if _is_bound(column, alias):
            column.replace(_bound(window, _COLUMNS[column.name]))
    columns = [each for each in table.this.expressions if each.alias not in _COLUMNS]
    table.this.set("expressions", columns)


def _is_bound(node: exp.Expr, alias: str) -> bool:
    return isinstance(node, exp.Column) and node.table == alias and node.name in _COLUMNS


def check_unnest(node: exp.Expr, query: Query) -> None:
    """Rejects an ``UNNEST`` whose columns have no names.

    Raises:
        OptionError: The columns have no names; the text gives line and column.
    """
    if not node.alias or not node.args["alias"].columns:
        raise place_in_query(node, query).error(
            "UNNEST needs names for its rows and their columns: UNNEST(xs) AS u (x)."
        )
    if node.args.get("offset"):
        raise place_in_query(node, query).error(
            "WITH ORDINALITY is not supported: UNNEST gives the elements alone."
        )


def unnest(tree: exp.Expr, schema: MappingSchema, query: Query) -> None:
    """Writes ``CROSS JOIN UNNEST`` as Spark's ``LATERAL VIEW``; the query is changed.

    Args:
        tree: The query, each of its columns with its table.
        schema: The columns of its tables.
        query: The query as it was read.

    Raises:
        OptionError: What is unnested is no array or map, or has other columns; the text gives line and column.
    """
    for node in [*tree.find_all(exp.Unnest)]:
        join = node.parent
        if not isinstance(join, exp.Join) or join.parent is None:
            raise place_in_query(node, query).error(
                "UNNEST stands behind the table whose array it takes: FROM t CROSS JOIN UNNEST(t.xs) AS u (x)."
            )
        _check_order(join, query)
        annotate_types(tree, schema=schema, dialect="spark", overwrite_types=True)
        view, select = _view(node, join, query), join.parent
        join.pop()
        select.append("laterals", view)


def _check_order(join: exp.Join, query: Query) -> None:
    """Rejects a join behind ``UNNEST``: in Spark, lateral views stand behind all joins."""
    joins = join.parent.args["joins"] if join.parent else []
    behind = joins[next(at for at, each in enumerate(joins) if each is join) :]
    if not all(isinstance(each.this, exp.Unnest) for each in behind):
        raise place_in_query(join, query).error(
            "a JOIN behind UNNEST is not supported: write the UNNEST last."
        )


def _view(node: exp.Unnest, join: exp.Join, query: Query) -> exp.Lateral:
    (value,) = node.expressions
    parts = _columns(value, query)
    alias = node.args["alias"]
    if len(alias.columns) != len(parts):
        raise place_in_query(node, query).error(
            f"UNNEST names {len(alias.columns)} columns, and gives {len(parts)}."
        )
    is_rows = value.type.this.name == "ARRAY" and parts != value.type.expressions
    if isinstance(value, (exp.Column, exp.Dot)) or value.meta.get(IN_SPARK):
        _tell_types(join, alias, parts)
    made = exp.Inline if is_rows else exp.Explode
    return exp.Lateral(
        this=made(this=value.copy()), view=True, outer=_is_outer(join, query), alias=alias.copy()
    )


def _columns(value: exp.Expr, query: Query) -> list[exp.DataType]:
    """The types of the columns that ``UNNEST`` gives: an element, the fields of a row, or a key and a value."""
    if value.type is None or kind_of(value) not in ("ARRAY", "MAP"):
        raise place_in_query(value, query).error(
            f"UNNEST takes an array or a map, and '{shown(value)}' is not known to be one: CAST it AS ARRAY<...>."
        )
    parts = parts_of(value.type)
    is_rows = kind_of(value) == "ARRAY" and parts[0].this.name == "STRUCT"
    return parts_of(parts[0]) if is_rows else parts


def _tell_types(join: exp.Join, alias: exp.TableAlias, kinds: list[exp.DataType]) -> None:
    """Casts columns of rows and maps to the types that they have, which sqlglot does not know."""
    by_name = {name.name: kind for name, kind in zip(alias.columns, kinds, strict=True)}
    for column in [*join.parent.find_all(exp.Column)] if join.parent else []:
        if column.table == alias.name and column.name in by_name:
            column.replace(spark_cast(column.copy(), by_name[column.name].sql("spark")))


def _is_outer(join: exp.Join, query: Query) -> bool:
    """Whether a row without elements is kept: ``LEFT JOIN UNNEST(...) ON TRUE``."""
    on = join.args.get("on")
    is_left = join.side == "LEFT" and isinstance(on, exp.Boolean) and on.this
    if not is_left and (join.side or on is not None or join.args.get("using")):
        raise place_in_query(join, query).error(
            "UNNEST is joined by CROSS JOIN, or by LEFT JOIN ... ON TRUE."
        )
    return bool(is_left)

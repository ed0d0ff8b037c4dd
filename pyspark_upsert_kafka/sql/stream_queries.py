"""What a query does to a stream: which rows it changes. A query that Spark would run incorrectly is rejected.

A stream of an append table only adds rows. A stream of an upsert table, and that of groups in update mode, holds changes of rows
that have a key: a filter, join or count over these changes has another result than over the table. A stream of rows before and after
each change can be filtered, since each of its rows is filtered by itself; it is not joined or counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from pyspark_upsert_kafka.core.pages import page
from pyspark_upsert_kafka.sql.changelog_calls import FROM, ChangelogCall
from pyspark_upsert_kafka.sql.changelog_functions import (
    call_of,
    changed_rows,
    check_codes,
    first_call,
)
from pyspark_upsert_kafka.sql.flink_query import Query, place_in_query, shown
from pyspark_upsert_kafka.sql.script_tables import Table
from pyspark_upsert_kafka.sql.sql_types import spark_cast
from pyspark_upsert_kafka.sql.stream_rows import ORDER, Rows
from pyspark_upsert_kafka.sql.table_functions import bounds_of, is_window

_BATCH = "Or run it in batch mode, over the table as of now: SET 'execution.runtime-mode' = 'batch'"

_FILTERED = (
    "filtering a table that changes is not done in a stream: a row that no longer fits would have to be deleted. Write "
    "all rows, and filter where the table is read."
)

_OF_CHANGES = {
    "where": f"{_FILTERED} {_BATCH}.",
    "group": (
        "aggregating a table that changes is not done in a stream: an update would be counted twice. Use normalize_changelog in "
        f"Python ({page('aggregating.md')}). {_BATCH}."
    ),
    "joins": (
        "joining is not done in a stream: Spark joins streams of rows that are only added, with watermarks, in Python; a table "
        f"that changes is joined in foreachBatch ({page('joining.md')}). {_BATCH}."
    ),
    "laterals": (
        "UNNEST over a table that changes is not done in a stream: rows that an update leaves out would have to be deleted. "
        f"{_BATCH}."
    ),
    "having": (
        "HAVING is not done in a stream: a group that no longer fits would have to be deleted. Write all groups, and filter where "
        f"the table is read. {_BATCH}."
    ),
    "distinct": (
        f"SELECT DISTINCT is not done in a stream: write GROUP BY with the same columns. {_BATCH}."
    ),
    "order": f"ORDER BY is not done in a stream, which has no end. {_BATCH}.",
    "limit": f"LIMIT is not done in a stream: which rows it takes would be chance. {_BATCH}.",
    "offset": f"OFFSET is not done in a stream: which rows it takes would be chance. {_BATCH}.",
}
"""By the part of a query that cannot be done."""

_FILTERED_CDC = f"{_FILTERED} Or leave the PRIMARY KEY out where the changes are read: then rows before and after each change are filtered. {_BATCH}."
_FILTERED_CALL = (
    f"{_FILTERED} Or filter the input of FROM_CHANGELOG by columns that no update changes, as those of the key: WHERE can be in the "
    "query that is the input. Or map UPDATE_BEFORE too, if its rows are there: then rows before and after each change are filtered."
)
_GROUPS_OF_IMAGES = (
    "aggregating a table that changes is not done in a stream: an update would be counted twice. Declare a PRIMARY KEY where the changes "  # noqa: S608 - a text for people
    f"are read, and use normalize_changelog in Python ({page('aggregating.md')}), or batch mode, over the table as of now: SET "
    "'execution.runtime-mode' = 'batch'."
)
_NESTED = f"a query within an expression is not done in a stream: it would be joined ({page('joining.md')}). {_BATCH}."
_OVER = (
    f"OVER is not done in a stream: Spark has windows of time only. Use TUMBLE or HOP. {_BATCH}."
)
_RANKED = (
    "ranking is not done in a stream: a row that falls behind would have to be deleted. Write all rows, and rank them where the "
    f"table is read. {_BATCH}."
)
_SETS = f"GROUPING SETS, CUBE and ROLLUP are not done in a stream: write one INSERT INTO for each grouping. {_BATCH}."
_UNION = f"UNION ALL of append tables is the only set operation that is done in a stream. {_BATCH}."
_NO_STREAM = (
    "rows that are no stream are not united with one: write them with an INSERT INTO of their own."
)
_NO_ORDER = (
    "FROM_CHANGELOG with UPDATE_BEFORE takes the rows of a table or of a projection of it: the order of others is not known. Write "
    "one INSERT INTO for each table."
)
_NO_WATERMARK = (
    "the column of a window must have a WATERMARK in its CREATE TABLE: without it, no window would ever be done. "
    "Declare WATERMARK FOR column AS column - INTERVAL '5' SECOND"
)

_RANKS = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK"})


class Streams:
    """Checks a query as a stream, and changes it where Spark needs another form.

    Args:
        tables: The table of each placeholder.
        query: The query as it was read.
    """

    def __init__(self, tables: Mapping[str, Table], query: Query) -> None:
        self._tables = tables
        self._query = query
        self.in_order: set[str] = set()
        """The placeholders of tables of which the column `ORDER` is read."""

    def rows(self, node: exp.Expr) -> Rows:
        """What the rows of a query are; the query is changed.

        Raises:
            OptionError: Spark cannot run it correctly in a stream; the text gives line and column.
        """
        if isinstance(node, exp.Subquery):
            self._refuse(node, "order", "limit", "offset")
            return self.rows(node.this)
        if isinstance(node, exp.Select):
            return self._select(node)
        if isinstance(node, exp.Union) and not node.args.get("distinct"):
            self._refuse(node, "order", "limit", "offset")
            return self._union(node)
        if isinstance(node, exp.Values):
            names = [column.name for column in node.args["alias"].columns] if node.alias else []
            return Rows(tuple(names))
        raise self._error(node, _UNION)

    def _union(self, node: exp.Union) -> Rows:
        for side in (node.this, node.expression):
            if side.find(exp.Table) is None:
                raise self._error(side, _NO_STREAM)
        first, second = self.rows(node.this), self.rows(node.expression)
        if not first.only_adds or not second.only_adds:
            raise self._error(node, _UNION)
        return Rows(first.names)

    def _select(self, node: exp.Select) -> Rows:
        self._refuse(node, "joins", "distinct", "order", "limit", "offset", "having")
        self._refuse_nested(node)
        source = node.args.get("from_")
        names = tuple(projection.alias_or_name for projection in node.expressions)
        constants = _constants(node)
        if source is None:
            return Rows(names, constants=constants)
        rows = self._source(source.this)
        call = call_of(node)
        if call is not None:
            return self._call(node, call, rows)
        grouped = node.args.get("group") is not None or any(
            projection.find(exp.AggFunc) for projection in node.expressions
        )
        if rows.only_adds:
            return (
                self._grouped(node, names, constants) if grouped else Rows(names, None, constants)
            )
        if grouped:
            why = _GROUPS_OF_IMAGES if rows.changes == "images" else _OF_CHANGES["group"]
            raise self._error(node.args.get("group") or node.expressions[0], why)
        if rows.changes != "images":
            self._refuse_filter(node, rows)
        self._refuse(node, "laterals")
        key = None if rows.key is None else self._projected(node, rows.names, rows.key)
        _show_hidden(node, rows.hidden)
        return Rows(names, key, constants, rows.changes, rows.in_order)

    def _call(self, node: exp.Select, call: ChangelogCall, rows: Rows) -> Rows:
        """The rows of FROM_CHANGELOG or TO_CHANGELOG."""
        made = changed_rows(node, call, rows)
        source = node.args["from_"].this
        if isinstance(source, exp.Table):
            check_codes(call, self._tables[source.name].columns(batch=False))
        if made.in_order:
            self._put_in_order(node)
        return made

    def _put_in_order(self, node: exp.Expr) -> None:
        """Adds the column `ORDER` to a query and to what it reads."""
        if isinstance(node, exp.Table):
            self.in_order.add(node.name)
        elif isinstance(node, exp.Subquery):
            self._put_in_order(node.this)
        elif isinstance(node, exp.Select) and node.args.get("from_"):
            _show_hidden(node, (ORDER,))
            self._put_in_order(node.args["from_"].this)
        else:
            raise self._error(node, _NO_ORDER)

    def _source(self, node: exp.Expr) -> Rows:
        if not isinstance(node, exp.Table):
            return self.rows(node)
        table = self._tables[node.name]
        names = tuple(table.columns(batch=False).names)
        if table.is_append:
            return Rows(names)
        if table.shows_images:
            self.in_order.add(node.name)
            return Rows(names, changes="images", in_order=True)
        by_name = {name.lower(): at for at, name in enumerate(names)}
        key = tuple(frozenset({by_name[name.lower()]}) for name in table.key)
        return Rows(names, key, changes="upserts" if table.has_deletes() else None)

    def _projected(
        self, node: exp.Select, names: tuple[str, ...], key: tuple[frozenset[int], ...]
    ) -> tuple[frozenset[int], ...]:
        """The key of a projection: the selected columns that are a column of the key, unchanged."""
        shown: dict[int, set[int]] = {}
        for at, projection in enumerate(node.expressions):
            value = projection.unalias()
            if isinstance(value, exp.Column):
                shown.setdefault(names.index(value.name), set()).add(at)
        return tuple(
            frozenset(to for column in part for to in shown.get(column, ())) for part in key
        )

    def _grouped(self, node: exp.Select, names: tuple[str, ...], constants: frozenset[int]) -> Rows:
        group = node.args.get("group")
        if group is not None and group.find(exp.GroupingSets, exp.Cube, exp.Rollup):
            raise self._error(group, _SETS)
        parts = [] if group is None else group.expressions
        for window in _windows(node):
            self._check_window(window, node)
        key = tuple(self._part(part, node) for part in parts)
        _count_by_sets(node, self._query)
        return Rows(names, key, constants)

    def _part(self, part: exp.Expr, node: exp.Select) -> frozenset[int]:
        """The columns that hold a part of the grouping; of a window, those that hold one of its bounds."""
        same = bounds_of(part) if is_window(part) else [part]
        return frozenset(
            at for at, projection in enumerate(node.expressions) if projection.unalias() in same
        )

    def _check_window(self, window: exp.Expr, node: exp.Select) -> None:
        column = window.expressions[0]
        if not self._has_watermark(column, node):
            raise self._error(window, f"{_NO_WATERMARK} (here: '{column.name}').")

    def _has_watermark(self, column: exp.Column, node: exp.Expr) -> bool:
        """Whether a column is the column of a table's WATERMARK; queries in between are followed."""
        while not isinstance(node, exp.Select):
            node = node.this
        source = node.args["from_"].this
        if isinstance(source, exp.Table):
            watermark = self._tables[source.name].watermark
            is_its = column.table == source.alias_or_name
            return is_its and watermark is not None and watermark[0] == column.name
        if not isinstance(source, exp.Subquery):
            return False
        for projection in source.selects:
            if projection.alias_or_name == column.name:
                inner = projection.unalias()
                return isinstance(inner, exp.Column) and self._has_watermark(inner, source.this)
        return False

    def _refuse_nested(self, node: exp.Select) -> None:
        for part in (
            *node.expressions,
            *(node.args[each] for each in ("where", "group") if node.args.get(each)),
        ):
            for inner in part.find_all(exp.Query, exp.Window):
                raise self._error(inner, _refusal(inner))

    def _refuse_filter(self, node: exp.Select, rows: Rows) -> None:
        call = first_call(node)
        tables = [self._tables[table.name] for table in node.find_all(exp.Table)]
        why = _OF_CHANGES["where"]
        if call is not None and call.name == FROM:
            why = _FILTERED_CALL
        elif rows.changes and any(table.is_cdc for table in tables):
            why = _FILTERED_CDC
        if node.args.get("where"):
            raise self._error(node.args["where"], why)

    def _refuse(self, node: exp.Expr, *parts: str) -> None:
        for name in parts:
            part = node.args.get(name)
            if part:
                raise self._error(part[0] if isinstance(part, list) else part, _OF_CHANGES[name])

    def _error(self, node: exp.Expr, sentence: str) -> Exception:
        return place_in_query(node, self._query).error(sentence)


def _constants(node: exp.Select) -> frozenset[int]:
    """The columns of a query that are the same in each row."""
    values = [projection.unalias() for projection in node.expressions]
    return frozenset(at for at, value in enumerate(values) if isinstance(value, exp.Literal))


def _show_hidden(node: exp.Select, names: tuple[str, ...]) -> None:
    """Adds columns of what a query reads behind its own."""
    alias = node.args["from_"].this.alias_or_name
    for name in names:
        column = exp.column(name, alias, quoted=True)
        node.append("expressions", exp.alias_(column, name, quoted=True))


def _refusal(part: exp.Expr) -> str:
    """The sentence about a query or an OVER within an expression."""
    if not isinstance(part, exp.Window):
        return _NESTED
    return _RANKED if part.this.name.upper() in _RANKS else _OVER


def _windows(node: exp.Select) -> list[exp.Expr]:
    parts = [*node.expressions, *([node.args["group"]] if node.args.get("group") else [])]
    return [each for part in parts for each in part.find_all(exp.Anonymous) if is_window(each)]


def _count_by_sets(node: exp.Select, query: Query) -> None:
    """Replaces ``COUNT(DISTINCT x)`` in a query by the size of the set of all values, which is exact.

    Spark has no distinct aggregates in a stream.
    """
    for distinct in [*node.find_all(exp.Distinct)]:
        call = distinct.parent
        if not isinstance(call, exp.Count) or len(distinct.expressions) != 1:
            raise place_in_query(distinct, query).error(
                f"'{shown(call or distinct)}' is not done in a stream: of distinct values, COUNT(DISTINCT x) of one column "
                "is. Or run it in batch mode: SET 'execution.runtime-mode' = 'batch'."
            )
        whole = call.parent if isinstance(call.parent, exp.Filter) else call
        collected = exp.Anonymous(this="collect_set", expressions=[distinct.expressions[0].copy()])
        values: exp.Expr = collected
        if isinstance(whole, exp.Filter):
            values = exp.Filter(this=collected, expression=whole.expression.copy())
        whole.replace(spark_cast(exp.Anonymous(this="size", expressions=[values]), "BIGINT"))

"""What a query does to a stream: which rows it changes. A query that Spark would run incorrectly is rejected.

A stream of an append table only adds rows. A stream of an upsert table, and that of groups in update mode, holds changes of rows
that have a key: a filter, join or count over these changes has another result than over the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from pyspark_upsert_kafka.sql.aggregates import count_by_sets
from pyspark_upsert_kafka.sql.expressions import place_in_query
from pyspark_upsert_kafka.sql.statements import Query
from pyspark_upsert_kafka.sql.tables import Table
from pyspark_upsert_kafka.sql.windows import bounds_of, is_window

_BATCH = "Or run it in batch mode, over the table as of now: SET 'execution.runtime-mode' = 'batch'"
OF_CHANGES = {
    "where": (
        "filtering a table that changes is not done in a stream: a row that no longer fits would have to be deleted. Write "
        f"all rows, and filter where the table is read. {_BATCH}."
    ),
    "group": (
        "aggregating a table that changes is not done in a stream: an update would be counted twice. Use normalize_changelog in "
        f"Python (docs/aggregating.md). {_BATCH}."
    ),
    "joins": (
        "joining is not done in a stream: Spark joins streams of rows that are only added, with watermarks, in Python; a table "
        f"that changes is joined in foreachBatch (docs/joining.md). {_BATCH}."
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
NESTED = f"a query within an expression is not done in a stream: it would be joined (docs/joining.md). {_BATCH}."
OVER = f"OVER is not done in a stream: Spark has windows of time only. Use TUMBLE or HOP. {_BATCH}."
RANKED = (
    "ranking is not done in a stream: a row that falls behind would have to be deleted. Write all rows, and rank them where the "
    f"table is read. {_BATCH}."
)
SETS = f"GROUPING SETS, CUBE and ROLLUP are not done in a stream: write one INSERT INTO for each grouping. {_BATCH}."
UNION = f"UNION ALL of append tables is the only set operation that is done in a stream. {_BATCH}."
NO_STREAM = (
    "rows that are no stream are not united with one: write them with an INSERT INTO of their own."
)
NO_WATERMARK = (
    "the column of a window must have a WATERMARK in its CREATE TABLE: without it, no window would ever be done. "
    "Declare WATERMARK FOR column AS column - INTERVAL '5' SECOND"
)


CHANGE = "_change_type"
_RANKS = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK"})


@dataclass(frozen=True)
class Rows:
    """The rows of a query in a stream.

    Args:
        names: Its columns.
        key: The parts of the rows' key, each as the columns that hold it; None = rows are only added.
        constants: The columns that are the same in each row.
        has_changes: Whether the last column says if a row is a delete or an upsert.
    """

    names: tuple[str, ...]
    key: tuple[frozenset[int], ...] | None = None
    constants: frozenset[int] = frozenset()
    has_changes: bool = False


class Streams:
    """Checks a query as a stream, and changes it where Spark needs another form.

    Args:
        tables: The table of each placeholder.
        query: The query as it was read.
    """

    def __init__(self, tables: Mapping[str, Table], query: Query) -> None:
        self._tables = tables
        self._query = query

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
        raise self._error(node, UNION)

    def _union(self, node: exp.Union) -> Rows:
        for side in (node.this, node.expression):
            if side.find(exp.Table) is None:
                raise self._error(side, NO_STREAM)
        first, second = self.rows(node.this), self.rows(node.expression)
        if first.key is not None or second.key is not None:
            raise self._error(node, UNION)
        return Rows(first.names)

    def _select(self, node: exp.Select) -> Rows:
        self._refuse(node, "joins", "distinct", "order", "limit", "offset", "having")
        self._refuse_nested(node)
        names = tuple(projection.alias_or_name for projection in node.expressions)
        constants = frozenset(
            at
            for at, projection in enumerate(node.expressions)
            if isinstance(projection.unalias(), exp.Literal)
        )
        source = node.args.get("from_")
        if source is None:
            return Rows(names, constants=constants)
        rows = self._source(source.this)
        grouped = node.args.get("group") is not None or any(
            projection.find(exp.AggFunc) for projection in node.expressions
        )
        if rows.key is None:
            return (
                self._grouped(node, names, constants) if grouped else Rows(names, None, constants)
            )
        if grouped:
            raise self._error(node.args.get("group") or node.expressions[0], OF_CHANGES["group"])
        self._refuse(node, "where", "laterals")
        made = Rows(names, self._projected(node, rows), constants, rows.has_changes)
        if rows.has_changes:
            change = exp.column(CHANGE, source.this.alias_or_name, quoted=True)
            node.append("expressions", exp.alias_(change, CHANGE, quoted=True))
        return made

    def _source(self, node: exp.Expr) -> Rows:
        if not isinstance(node, exp.Table):
            return self.rows(node)
        table = self._tables[node.name]
        names = tuple(table.columns(batch=False).names)
        if table.is_append:
            return Rows(names)
        by_name = {name.lower(): at for at, name in enumerate(names)}
        key = tuple(frozenset({by_name[name.lower()]}) for name in table.key)
        return Rows(names, key, has_changes=table.has_deletes())

    def _projected(self, node: exp.Select, rows: Rows) -> tuple[frozenset[int], ...]:
        """The key of a projection: the selected columns that are a column of the key, unchanged."""
        shown: dict[int, set[int]] = {}
        for at, projection in enumerate(node.expressions):
            value = projection.unalias()
            if isinstance(value, exp.Column):
                shown.setdefault(rows.names.index(value.name), set()).add(at)
        return tuple(
            frozenset(to for column in part for to in shown.get(column, ()))
            for part in rows.key or ()
        )

    def _grouped(self, node: exp.Select, names: tuple[str, ...], constants: frozenset[int]) -> Rows:
        group = node.args.get("group")
        if group is not None and group.find(exp.GroupingSets, exp.Cube, exp.Rollup):
            raise self._error(group, SETS)
        parts = [] if group is None else group.expressions
        for window in _windows(node):
            self._check_window(window, node)
        key = tuple(self._part(part, node) for part in parts)
        count_by_sets(node, self._query)
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
            raise self._error(window, f"{NO_WATERMARK} (here: '{column.name}').")

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

    def _refuse(self, node: exp.Expr, *parts: str) -> None:
        for name in parts:
            part = node.args.get(name)
            if part:
                raise self._error(part[0] if isinstance(part, list) else part, OF_CHANGES[name])

    def _error(self, node: exp.Expr, sentence: str) -> Exception:
        return place_in_query(node, self._query).error(sentence)


def _refusal(part: exp.Expr) -> str:
    """The sentence about a query or an OVER within an expression."""
    if not isinstance(part, exp.Window):
        return NESTED
    return RANKED if part.this.name.upper() in _RANKS else OVER


def _windows(node: exp.Select) -> list[exp.Expr]:
    parts = [*node.expressions, *([node.args["group"]] if node.args.get("group") else [])]
    return [each for part in parts for each in part.find_all(exp.Anonymous) if is_window(each)]

"""``WHERE`` over a table that changes: a row that does not fit is a delete of its key.

So a row that an update makes unfit leaves the table that is written, as in Flink. Flink remembers which rows were written; here the
delete of a key that was never written does no harm. Where a changelog has the rows before updates too, each of its rows is filtered by
itself: the row before, without one after it, is the delete. A condition on the key alone filters all changes of a row alike.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pyspark_upsert_kafka.sql.stream_rows import CHANGE, Rows

_COMPARING = (
    exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.GT, exp.GTE,
    exp.LT, exp.LTE, exp.Is, exp.Like, exp.Between, exp.In, exp.Cast, exp.DataType, exp.DataTypeParam,
)  # fmt: skip
"""What a condition has that is the same at any time."""

_DELETE = exp.Literal.string("delete")
_UPSERT = exp.Literal.string("upsert")


def delete_what_does_not_fit(select: exp.Select, rows: Rows) -> Rows:
    """Makes the condition of a query part of what each row does; the query is changed.

    Args:
        select: The query, each of its columns with its table.
        rows: The rows that it reads, which change.

    Returns:
        The rows that it reads then.
    """
    where = select.args.get("where")
    if where is not None and rows.changes != "images" and not _is_of_key(where.this, rows):
        _read_with_kind(select, rows, _kind(where.this, select, rows))
        select.set("where", None)
        rows = replace(rows, changes="filtered")
    if rows.changes == "filtered":
        _compute_only_where_kept(select, rows)
    return rows


def _is_of_key(condition: exp.Expr, rows: Rows) -> bool:
    """Whether a condition is the same for all changes of a row, deletes included: it compares columns of the key with constants."""
    key = _key_names(rows)
    return all(
        node.name in key if isinstance(node, exp.Column) else isinstance(node, _COMPARING)
        for node in condition.walk()
    )


def _key_names(rows: Rows) -> frozenset[str]:
    return frozenset(rows.names[at] for part in rows.key or () for at in part)


def _kind(fits: exp.Expr, select: exp.Select, rows: Rows) -> exp.Expr:
    """What a row does, if its condition is part of that."""
    if rows.changes is None:
        return exp.Case(ifs=[exp.If(this=fits, true=_UPSERT.copy())], default=_DELETE.copy())
    stays = exp.and_(_is_kept(select), fits, copy=False)
    return exp.Case(ifs=[exp.If(this=stays, true=_change(select))], default=_DELETE.copy())


def _read_with_kind(select: exp.Select, rows: Rows, kind: exp.Expr) -> None:
    """Puts a query in between, whose rows say what they do."""
    source = select.args["from_"].this
    name = source.alias_or_name
    columns = [exp.column(column, name, quoted=True) for column in rows.names]
    change = exp.alias_(kind, CHANGE, quoted=True)
    inner = exp.Select(expressions=[*columns, change], from_=exp.From(this=source))
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    select.set("from_", exp.From(this=exp.Subquery(this=inner, alias=alias)))


def _compute_only_where_kept(select: exp.Select, rows: Rows) -> None:
    """A delete has its key only: an expression may fail for a row that does not fit, for which Flink does not compute it."""
    key = _key_names(rows)
    for projection in select.expressions:
        value = projection.unalias()
        is_of_key = isinstance(value, exp.Column) and value.name in key
        if not is_of_key and not isinstance(value, exp.Literal):
            kept = exp.If(this=_is_kept(select), true=value.copy())
            value.replace(exp.Case(ifs=[kept]))


def _is_kept(select: exp.Select) -> exp.Expr:
    return exp.NEQ(this=_change(select), expression=_DELETE.copy())


def _change(select: exp.Select) -> exp.Expr:
    return exp.column(CHANGE, select.args["from_"].this.alias_or_name, quoted=True)

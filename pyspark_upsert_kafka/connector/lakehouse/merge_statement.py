"""The MERGE statement of a micro-batch, as text; which changes are older than the row of the table, and so change nothing.

The changes of a key have become one row. The table may be newer than some of them, if it says how new its row is. They are in
order, so a value that is older than the table's row has only older ones before it: it is enough to look at the newest change, at
the newest that has a row, and at the newest that has sent a value of a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark_upsert_kafka.connector.lakehouse.merge_settings import Deletes
from pyspark_upsert_kafka.core.ddl.spark_columns import quoted

PLACE = ("partition", "topic")
"""The fields of an order that say where a change lies, in the order in which places are compared."""


@dataclass(frozen=True)
class Merge:
    """What a MERGE statement merges.

    Args:
        table: The table, in SQL.
        changes: The view of the changes, in SQL: one row for each key, with the table's columns of the same names, and
            the column ``flags`` of `changes_by_key`.
        keys: The columns of the key.
        columns: All columns that are written; those of the key are among them.
        deletes: What a delete does.
        deleted_column: The column that says that a row is deleted; None unless such rows stay.
        flags: The name of the column of flags.
        of_last_change: The columns that show the last change of the row, a delete that leaves the row too.
        partial: The columns of which a change may not send the value, and the place of each in the flags.
        revives_empty: Whether a row that was deleted gets NULL for values that were not sent, as a new row does.
        sequence: The columns that say how new a row is, and whether each may be NaN.
        timestamp: The column that has the timestamp of the row's last change; None = the table does not say when and where
            that was.
        place: The columns that have the partition of the row's last change, and its topic if both sides tell it.
        is_whole_table: Whether rows of other keys are deleted.
        again: The column of the view that says that a row is there a second time, to be inserted once the first one has deleted the
            row of its key; None = each key is there once.
    """

    table: str
    changes: str
    keys: Sequence[str]
    columns: Sequence[str]
    deletes: Deletes
    deleted_column: str | None
    flags: str
    of_last_change: Sequence[str] = ()
    partial: Mapping[str, int] = field(default_factory=dict)
    revives_empty: bool = False
    sequence: Mapping[str, bool] = field(default_factory=dict)
    timestamp: str | None = None
    place: Sequence[str] = ()
    is_whole_table: bool = False
    again: str | None = None

    def statement(self) -> str:
        """The MERGE statement, a clause a line."""
        same = [f"t.{quoted(key)} = s.{quoted(key)}" for key in self.keys]
        first = [] if self.again is None else [f"NOT s.{quoted(self.again)}"]
        on = " AND ".join([*same, *first])
        begin = f"MERGE INTO {self.table} AS t USING {self.changes} AS s ON {on}"
        return "\n".join([begin, *_clauses(self)])


def _clauses(merge: Merge) -> Iterator[str]:
    has_row = _flag(merge, "has_row")
    older = _is_older(merge, _flag(merge, "last"))
    matched = "WHEN MATCHED" if older is None else f"WHEN MATCHED AND NOT {older}"
    updated = {quoted(name): _new_value(name, merge) for name in merge.columns}
    inserted = {quoted(name): f"s.{quoted(name)}" for name in merge.columns}
    is_reborn = _flag(merge, "is_reborn")
    if merge.deletes is Deletes.HARD:
        goes = f"NOT {has_row}" if merge.again is None else f"(NOT {has_row} OR {is_reborn})"
        yield f"{matched} AND {goes} THEN DELETE"
    if merge.deleted_column is not None:
        deleted = quoted(merge.deleted_column)
        marked = {deleted: "true", **{quoted(name): f"s.{quoted(name)}" for name in merge.of_last_change}}  # fmt: skip
        row_is_older = _is_older(merge, _flag(merge, "row"))
        stays = f"NOT {has_row}" if row_is_older is None else f"(NOT {has_row} OR {row_is_older})"
        yield f"{matched} AND {stays} THEN UPDATE SET {_assignments(marked)}"
        for values in (updated, inserted):
            values[deleted] = _flag(merge, "is_deleted")
    yield f"{matched} THEN UPDATE SET {_assignments(updated)}"
    is_marked = merge.deleted_column is not None and older is not None
    # A change that is older than the delete, and comes later, is then known to be older.
    is_inserted = "" if is_marked else f" AND {has_row}"
    if merge.again is not None:
        is_inserted += f" AND (NOT {is_reborn} OR s.{quoted(merge.again)})"
    names, new = ", ".join(inserted), ", ".join(inserted.values())
    yield f"WHEN NOT MATCHED{is_inserted} THEN INSERT ({names}) VALUES ({new})"  # noqa: S608
    if merge.is_whole_table:
        yield f"WHEN NOT MATCHED BY SOURCE {_absent(merge)}"


def _flag(merge: Merge, name: str) -> str:
    return f"s.{quoted(merge.flags)}.{name}"


def _assignments(values: Mapping[str, str]) -> str:
    return ", ".join(f"t.{name} = {value}" for name, value in values.items())


def _absent(merge: Merge) -> str:
    """What happens to a row whose key is not in the batch."""
    if merge.deleted_column is None:
        return "THEN DELETE"
    deleted = f"t.{quoted(merge.deleted_column)}"
    return f"AND NOT coalesce({deleted}, false) THEN UPDATE SET {deleted} = true"


def _new_value(name: str, merge: Merge) -> str:
    """The value of a column in a row of the table that is updated."""
    value, of_row = f"s.{quoted(name)}", f"t.{quoted(name)}"
    if name not in merge.partial:
        return value
    sent = f"{_flag(merge, 'sent')}[{merge.partial[name]}]"
    older = _is_older(merge, sent)
    is_new = f"{sent} IS NOT NULL" if older is None else f"{sent} IS NOT NULL AND NOT {older}"
    empty = ""
    if merge.revives_empty and merge.deleted_column is not None:
        # If it is deleted again, it stays as it is: a batch that runs again must not find what it has done itself.
        revived = f"t.{quoted(merge.deleted_column)} AND NOT {_flag(merge, 'is_deleted')}"
        empty = f" WHEN {revived} THEN NULL"
    return f"CASE WHEN {is_new} THEN {value}{empty} ELSE {of_row} END"


def _is_older(merge: Merge, order: str) -> str | None:
    """Whether a change is older than the row of the table; None = the table does not say how new its row is.

    Args:
        merge: What is merged.
        order: The order of the change, in SQL.
    """
    older = None if merge.timestamp is None else _is_older_in_log(merge, order, merge.timestamp)
    for at, (name, may_be_nan) in reversed([*enumerate(merge.sequence.items())]):
        value, of_row = f"{order}.s{at}", f"t.{quoted(name)}"
        if may_be_nan:
            of_row = f"CASE WHEN isnan({of_row}) THEN NULL ELSE {of_row} END"
        lower = f"coalesce({value} < {of_row}, {value} IS NULL AND {of_row} IS NOT NULL)"
        older = lower if older is None else f"({lower} OR ({value} <=> {of_row} AND {older}))"
    return older


def _is_older_in_log(merge: Merge, order: str, timestamp: str) -> str:
    """Whether a change is older than the row of the table, which a change in another partition has made.

    The rule is that of ``connector/changelog/last_changes.py``; a row that does not say when and where it was changed is older than all.
    """
    time, time_of_row = f"{order}.time", f"t.{quoted(timestamp)}"
    places = [
        (f"{order}.{part}", f"t.{quoted(column)}")
        for part, column in zip(PLACE, merge.place, strict=False)
    ]
    differs = " OR ".join(f"{place} <> {of_row}" for place, of_row in places)
    return (
        f"coalesce(({differs}) AND ({time} < {time_of_row} OR ({time} <=> {time_of_row} AND "
        f"({_is_lower(places)})) OR ({time} IS NULL AND {time_of_row} IS NOT NULL)), false)"
    )


def _is_lower(places: Sequence[tuple[str, str]]) -> str:
    """Whether the first of these that differs is lower than that of the row."""
    (place, of_row), *others = places
    if not others:
        return f"{place} < {of_row}"
    return f"{place} < {of_row} OR ({place} = {of_row} AND {_is_lower(others)})"

"""``INSERT INTO ... ON CONFLICT``: whether it means the same here as in Flink.

In Flink, rows of a query are in conflict if they have different keys in the query, and the same key in the table.
"""

from __future__ import annotations

from pyspark_upsert_kafka.sql.script import OnConflict
from pyspark_upsert_kafka.sql.stream_rows import Rows

_TO_DO = {
    "ERROR": "to fail where a second row has the key of another",
    "NOTHING": "to leave out the second row of a key",
    "DEDUPLICATE": "to go back to the row before, where one of two rows with one key is deleted",
}
"""What each strategy would have to keep rows for."""


def check_on_conflict(clause: OnConflict | None, rows: Rows | None, table: str) -> None:
    """Rejects a clause that would need more than the last row of each key.

    Rows with a key are not in conflict: `check_key` has found that it is the table's.

    Args:
        clause: The clause.
        rows: The rows of the query; None = it is a batch.
        table: The table that is written.

    Raises:
        OptionError: It cannot be done; the text gives line and column.
    """
    if clause is None or (rows is not None and rows.key is not None):
        return
    if rows is not None and rows.has_changes:
        raise clause.place.error(
            f"{_not_done(clause)}: the key of the changes is not known. If the primary key of '{table}' is that of the table they "
            "come from, there are no conflicts: leave the clause out, or declare that key where the changes are read."
        )
    if clause.strategy != "DEDUPLICATE":
        raise clause.place.error(
            f"{_not_done(clause)}. Write DO DEDUPLICATE, or leave the clause out: the last row of each key is the table's."
        )


def conflict_in_words(clause: OnConflict | None) -> str:
    """What is added to the error about a query that has another key than the table."""
    return "" if clause is None else f" {_not_done(clause)}."


def _not_done(clause: OnConflict) -> str:
    return (
        f"ON CONFLICT DO {clause.strategy} is not done here, since all rows would have to be kept "
        f"{_TO_DO[clause.strategy]}"
    )

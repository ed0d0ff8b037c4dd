"""A recorded topic of Debezium: the changes of a table of Postgres, in Debezium's JSON format, with and without schemas.

``record(Recorded(seed=7))`` gives the messages and the table that they must amount to; equal arguments give equal bytes.
``python -m tools.recorded_debezium --bootstrap-servers localhost:9092`` writes them to a broker, at once or in parts.

The table has a column of each type that Postgres users have most. The recording has a snapshot, then transactions of
creates, updates and deletes; an update of the key (delete, tombstone, create), a column that is added, a long text that
updates do not say (``__debezium_unavailable_value``); and beside the topic of the table those of transactions and of
heartbeats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tools.recorded_debezium.columns import COLUMNS, Column
from tools.recorded_debezium.connector import Connector, Recorded, Row
from tools.recorded_debezium.messages import TOPIC, UNAVAILABLE, Message
from tools.recorded_debezium.side_topics import HEARTBEAT_TOPIC, TRANSACTION_TOPIC
from tools.recorded_debezium.statements import create_table, insert

__all__ = [
    "HEARTBEAT_TOPIC",
    "TOPIC",
    "TRANSACTION_TOPIC",
    "UNAVAILABLE",
    "Message",
    "Recorded",
    "Recording",
    "record",
]


@dataclass(frozen=True)
class Recording:
    """What was recorded.

    Args:
        parts: The messages, in the order in which they are written: those of the ``snapshot``, of the ``changes`` after it,
            and those from the ``added-column`` on.
        table: The rows in the database in the end, by their key; a column that was added later is None in older rows.
        as_sent: The same as the last message of each row says it: with `UNAVAILABLE` where Postgres did not say a text.
        columns: The table's columns in the end.
        before: The SQL that makes the table as it is when the connector starts.
        transactions: The SQL of each transaction after that.
    """

    parts: Mapping[str, Sequence[Message]]
    table: Mapping[int, Row]
    as_sent: Mapping[int, Row]
    columns: Sequence[Column]
    before: Sequence[str] = field(repr=False)
    transactions: Sequence[Sequence[str]] = field(repr=False)

    @property
    def messages(self) -> list[Message]:
        """Those of all parts."""
        return [message for part in self.parts.values() for message in part]

    @property
    def ddl(self) -> str:
        """The columns in Spark's DDL."""
        return ", ".join(f"{column.name} {column.spark}" for column in self.columns)


def record(what: Recorded) -> Recording:
    """Records a topic."""
    connector = Connector(what)
    before = [insert(row) for row in connector.table.values()]
    parts = {
        "snapshot": [*connector.snapshot()],
        "changes": [*connector.changes()],
        "added-column": [*connector.changes_after_a_column_was_added()],
    }
    return Recording(
        parts,
        connector.table,
        connector.as_sent,
        connector.columns,
        [create_table(COLUMNS, what.replica_identity), *before],
        connector.transactions,
    )

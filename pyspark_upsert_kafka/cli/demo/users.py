"""The table of users: a query copies its changes from topic to topic, deletes included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_upsert_kafka.cli.demo.sample_data import UserChange
from pyspark_upsert_kafka.cli.demo.topics import Topics
from pyspark_upsert_kafka.cli.raw_messages import RawMessage, raw_messages
from pyspark_upsert_kafka.core.options.properties import Properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

USERS = "users"
COPY = "users_copy"

_USER = "user_id BIGINT, user_name STRING, user_region STRING"
_CHANGE = f"{_USER}, _change_type STRING"

Table = dict[int, tuple[str | None, str | None]]


def write_changes(spark: SparkSession, topics: Topics, changes: Sequence[UserChange]) -> None:
    """Writes changes of users; a row whose ``_change_type`` is ``delete`` becomes a tombstone."""
    columns = [pa.array(column) for column in zip(*changes, strict=True)]
    names = ["user_id", "user_name", "user_region", "_change_type"]
    rows = spark.createDataFrame(pa.table(columns, names), _CHANGE)
    options = topics.table(USERS, "user_id")
    rows.write.format("upsert-kafka").mode("append").options(**options).save()


def start_copying(spark: SparkSession, topics: Topics, checkpoint: str) -> StreamingQuery:
    """Starts the query that copies each change from one topic to the other."""
    changes = (
        spark.readStream.format("upsert-kafka")
        .schema(_CHANGE)
        .options(**topics.table(USERS, "user_id"))
        .load()
    )
    return (
        changes.writeStream.format("upsert-kafka")
        .options(**topics.table(COPY, "user_id"))
        .option("checkpointLocation", checkpoint)
        .queryName("copy")
        .start()
    )


def read_copy(spark: SparkSession, topics: Topics) -> Table:
    """User -> name and region, read from the copy."""
    options = topics.table(COPY, "user_id")
    rows = spark.read.format("upsert-kafka").schema(_USER).options(**options).load().collect()
    return {row.user_id: (row.user_name, row.user_region) for row in rows}


def expected_table(changes: Iterable[UserChange]) -> Table:
    """The same, computed from the changes in plain Python."""
    table: Table = {}
    for change in changes:
        if change.kind == "delete":
            table.pop(change.user_id, None)
        else:
            table[change.user_id] = (change.user_name, change.user_region)
    return table


def user_with_most_changes(changes: Iterable[UserChange]) -> int:
    """The user with the most changes among those who left once, if any did."""
    history: dict[int, list[str]] = {}
    for change in changes:
        history.setdefault(change.user_id, []).append(change.kind)
    return max(history, key=lambda user: ("delete" in history[user], len(history[user])))


def messages_of(topics: Topics, user: int) -> list[RawMessage]:
    """The messages of the copy that have this user as key."""
    properties = Properties({"bootstrap.servers": topics.servers})
    key = b'{"user_id":%d}' % user
    return [
        message for message in raw_messages(properties, topics.named(COPY)) if message.key == key
    ]

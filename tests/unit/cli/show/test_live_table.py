"""The rows that a live table shows while changes arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from pyspark_upsert_kafka.cli.show.live_table import LastRows, ShownRows, TableRows
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.read_request import Request
from pyspark_upsert_kafka.connector.reading.message_rows import Rows
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from pyspark_upsert_kafka.core.table import table_to_read
from tests.table_options import table_options

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def asked(**more: str) -> Request:
    """A table of ids and names."""
    options = read_options(table_options(**more), format_options, stream=False)
    return Request(
        table_to_read(spark_columns("id BIGINT, name STRING NOT NULL"), options), options
    )


def rows(*changes: tuple[int, str | None]) -> Rows:
    """Changes; one without a name is a delete."""
    columns = [pa.array(column) for column in zip(*changes, strict=True)]
    deletes = [name is None for _, name in changes]
    return Rows(columns, pa.array(deletes) if any(deletes) else None, [])


def shown(live: ShownRows, limit: int = 10) -> tuple[list[tuple[Any, ...]], int]:
    """What is drawn, and of how many rows."""
    batches, count = live.first(limit)
    assert all(batch.schema.names == ["id", "name"] for batch in batches)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()], count


def test_a_table_while_it_changes() -> None:
    """It is asked for again and again, and each time is what all changes so far add up to."""
    live = TableRows(asked())
    steps: Sequence[tuple[Rows, list[tuple[int, str]]]] = [
        (rows((2, "a"), (1, "b"), (2, "c")), [(1, "b"), (2, "c")]),
        (rows((1, None)), [(2, "c")]),
        (rows((3, None)), [(2, "c")]),
        (rows((1, "d")), [(1, "d"), (2, "c")]),
    ]

    assert shown(live) == ([], 0)
    for changes, table in steps:
        live.add(FIRST, changes)
        assert shown(live) == (table, len(table))
        assert shown(live, limit=1) == (table[:1], len(table))


def test_equal_keys_of_two_partitions() -> None:
    """They are two rows, as in a batch read."""
    live = TableRows(asked())
    for place in (FIRST, SECOND):
        live.add(place, rows((1, "a"), (2, "b")))
    live.add(SECOND, rows((1, None)))

    assert shown(live) == ([(1, "a"), (2, "b"), (2, "b")], 3)


def test_a_table_that_is_too_large() -> None:
    """It is an error that says what can be followed."""
    live = TableRows(asked(**{"scan.snapshot.memory": "1 mb"}))

    many = rows(*((key, "x" * 100) for key in range(8_000)))

    with pytest.raises(OptionError, match="follow one --key, or the --changelog"):
        live.add(FIRST, many)


def test_the_last_changes() -> None:
    """Of changes the last ones are shown, however they come."""
    live = LastRows(asked(), limit=3)
    live.add(FIRST, rows((1, "a"), (2, "b")))
    assert shown(live) == ([(1, "a"), (2, "b")], 2)
    live.add(SECOND, rows((3, "c"), (4, "d")))
    assert shown(live) == ([(2, "b"), (3, "c"), (4, "d")], 4)
    assert shown(live, limit=1) == ([(4, "d")], 4)
    live.add(FIRST, rows(*((at, "e") for at in range(5))))
    assert shown(live) == ([(2, "e"), (3, "e"), (4, "e")], 9)

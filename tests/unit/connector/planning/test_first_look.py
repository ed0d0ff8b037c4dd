"""What is looked at, and said, where a query starts that goes on past messages."""

from __future__ import annotations

import logging
from typing import Any
from unittest.mock import ANY

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning.first_look import warn_of_no_rows
from pyspark_upsert_kafka.connector.reading import task_reading
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options
from tests.unit.connector.test_read_range import FakeClient
from tests.unit.registry.fake_registry import serving

COLUMNS = StructType([StructField("id", LongType()), StructField("name", StringType())])
GOOD, BAD, DELETE = (b'{"id":1}', b'{"name":"a"}'), (b'{"id":2}', b"?"), (b'{"id":1}', None)


def messages(*pairs: tuple[bytes | None, bytes | None], **more: Any) -> RawBatch:
    """Messages with these keys and values."""
    keys, values = (BytesColumn.of([pair[side] for pair in pairs]) for side in (0, 1))
    return RawBatch("orders", 0, keys, values, [*range(len(pairs))], **more)


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    """Looks at batches; gives the ranges that were read, and what was said."""

    def looking(
        ranges: list[Range], *batches: RawBatch, mode: str = "ignore", **more: str
    ) -> tuple[list[Range], list[str]]:
        client = FakeClient(list(batches))
        monkeypatch.setattr(task_reading, "load_client", lambda _: client)
        given = table_options(topic="orders", **{"error-handling.mode": mode}, **more)
        options = read_options(given, format_options, stream=False)
        with caplog.at_level(logging.WARNING):
            warn_of_no_rows(table_to_read(COLUMNS, options), options, ranges)
        assert not any(asked.fail_on_data_loss for asked in client.asked)
        return client.read_ranges, [
            each.getMessage() for each in caplog.records if "newest messages" in each.getMessage()
        ]

    return looking


def test_the_ends_of_the_largest_partitions_are_looked_at(look) -> None:
    """At most a thousand offsets of three partitions; parts of a partition are one, and the topic's id is not asked for again."""
    ranges = [
        Range("orders", 0, 0, 10, "id"),
        Range("orders", 1, 0, 4_000, "id"),
        Range("orders", 1, 4_000, 9_000, "id"),
        Range("orders", 2, 500, 700, "id"),
        Range("orders", 3, 7, 7, "id"),
        Range("orders", 4, 100, 2_100, "id"),
    ]

    read, _ = look(ranges, messages())

    assert read == [
        Range("orders", 1, 8_000, 9_000, "id", is_checked_after=False),
        Range("orders", 4, 1_100, 2_100, "id", is_checked_after=False),
        Range("orders", 2, 500, 700, "id", is_checked_after=False),
    ]


def test_nothing_is_read_where_nothing_is_gone_past(look) -> None:
    """A query that fails at the first bad message says so itself, and one of an empty topic has nothing to look at."""
    assert look([Range("orders", 0, 0, 10)], messages(BAD), mode="fail") == ([], [])
    assert look([], messages(BAD)) == ([], [])
    assert look([Range("orders", 0, 3, 3)], messages(BAD)) == ([], [])


@pytest.mark.parametrize("kept", [GOOD, DELETE])
def test_one_row_or_one_delete_is_enough(look, kept) -> None:
    """Then the topic is read as it is meant to be, and no further partition is looked at."""
    places = [Range("orders", 0, 0, 10), Range("orders", 1, 0, 10)]

    read, told = look(places, messages(BAD, kept))

    assert (len(read), told) == (1, [])


def test_why_there_are_no_rows_is_counted(look) -> None:
    """The most frequent reason comes first."""
    _, (told,) = look([Range("orders", 0, 0, 10)], messages((None, b"{}"), BAD, BAD))

    assert "None of the 3 newest messages" in told
    assert "'orders' partition 0" in told
    assert told.index("2 cannot be read: ") < told.index("1 cannot be read: the message has no key")


def test_a_query_that_takes_messages_by_headers_goes_past_the_others(look) -> None:
    """A message without the header is no error, so that a header which none has would read as an empty topic."""
    others = messages(GOOD, GOOD, headers=[(), (("type", b"Refund"),)])

    _, (told,) = look([Range("orders", 0, 0, 10)], others, mode="fail", scan__headers="type=Order")

    assert "2 are skipped by 'scan.headers' = 'type=Order'" in told


def test_deletes_alone_are_no_rows_of_a_record_type(look) -> None:
    """They may be those of another type: so they are counted beside what cannot be read."""
    with serving() as registry:
        given = {
            "value.format": "avro-confluent",
            "value.avro-confluent.url": registry.url,
            "scan.record-names": "Order",
        }
        place = Range("orders", 0, 0, 10)

        assert look([place], messages(DELETE, DELETE), **given) == ([ANY], [])
        _, (told,) = look([place], messages(DELETE, DELETE, BAD), **given)

    assert "1 cannot be read: " in told
    assert "2 are deletes" in told

"""Messages of CDC formats to rows of the table: keys, null values, bad messages, shares, warnings."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType, TimestampNTZType, TimestampType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.reading.message_rows import RowDecoder
from pyspark_upsert_kafka.connector.reading.snapshot import Snapshot
from pyspark_upsert_kafka.connector.reading.task_reading import RangeDecoder, nullable
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Share
from pyspark_upsert_kafka.core.table import table_to_read
from tests.table_options import table_options
from tests.unit.connector.reading.test_metadata import FakeBatch, fake_batch
from tests.unit.connector.reading.test_rows import CHANGE, ERROR, OFFSET, columns, rows_of

KEYED = columns("id#", "name", CHANGE, OFFSET)

ROW_KEY: dict[str, Any] = {"primary-key": "id", "key.format": None}
"""The key columns come from the row."""
BOTH_KEYS: dict[str, Any] = {"primary-key": "id", "key.format": "json"}
"""The key of messages is read too."""
IMAGES: dict[str, Any] = {"primary-key": None, "key.format": None, "read.mode": "changelog"}


def options_of(**given: Any) -> Any:
    """Options of a table with Debezium's messages."""
    stream = given.pop("stream", True)
    return read_options(
        table_options(**{"topic": "orders", "value.format": "debezium-json", **given}),
        format_options,
        stream=stream,
    )


def decoder(schema: StructType = KEYED, zone: str = "UTC", **given: Any) -> RowDecoder:
    """A decoder of such a table."""
    options = options_of(**given)
    return RowDecoder(table_to_read(schema, options), options, zone)


def envelope(op: str, before: Any = None, after: Any = None, **more: Any) -> bytes:
    """A message's value; rows are (id, name)."""
    named = [
        None if each is None else dict(zip(("id", "name"), each, strict=False))
        for each in (before, after)
    ]
    return json.dumps({"op": op, "before": named[0], "after": named[1], **more}).encode()


def key(id_: Any) -> bytes:
    """A message's key."""
    return json.dumps({"id": id_}).encode()


def shown(batch: FakeBatch, schema: StructType = KEYED, **given: Any) -> list[tuple[Any, ...]]:
    """The rows of a batch."""
    return rows_of(decoder(schema, **given).decode(batch), schema)


def bad(batch: FakeBatch, schema: StructType = KEYED, **given: Any) -> list[tuple[int, str]]:
    """Index and stage of each message that cannot be decoded."""
    return [(each.index, each.stage) for each in decoder(schema, **given).decode(batch).bad]


CHANGES = fake_batch(
    (key(1), envelope("c", None, (1, "a"))),
    (key(2), envelope("u", (1, "a"), (2, "b"))),
    (key(2), None),
    (key(3), b""),
    (key(2), envelope("d", (2, "b"))),
    (key(2), envelope("t")),
)


def test_the_key_of_the_row() -> None:
    """Without a key format null and empty values are ignored, and keys of messages are not looked at."""
    assert shown(CHANGES, **ROW_KEY) == [
        (1, "a", "upsert", 0),
        (1, None, "delete", 1),
        (2, "b", "upsert", 1),
        (2, None, "delete", 4),
    ]
    assert bad(fake_batch((b"?", envelope("c", None, (1,))), (None, None)), **ROW_KEY) == []


def test_a_null_value_is_a_delete_where_the_message_key_is_read() -> None:
    """Compaction may have left nothing else of a delete; a second one does no harm. An empty value is ignored."""
    assert shown(CHANGES, **BOTH_KEYS) == [
        (1, "a", "upsert", 0),
        (1, None, "delete", 1),
        (2, "b", "upsert", 1),
        (2, None, "delete", 2),
        (2, None, "delete", 4),
    ]


def test_keys_with_their_schema() -> None:
    """A key shows whether it has one, whatever values have; it tells the row where the value does not."""
    fields = [{"type": "int64", "optional": False, "field": "id"}]
    schema = {"type": "struct", "fields": fields, "optional": False, "name": "shop.people.Key"}

    def with_schema(id_: int) -> bytes:
        return json.dumps({"schema": schema, "payload": {"id": id_}}).encode()

    batch = fake_batch(
        (with_schema(1), envelope("c", None, (1, "a"))), (with_schema(1), None), (key(2), None),
        (with_schema(3), envelope("d")),
    )  # fmt: skip
    assert shown(batch, **BOTH_KEYS) == [
        (1, "a", "upsert", 0),
        (1, None, "delete", 1),
        (2, None, "delete", 2),
        (3, None, "delete", 3),
    ]


def test_images() -> None:
    """Without a primary key there are rows before and after each change; null values are ignored."""
    assert shown(CHANGES, **IMAGES) == [
        (1, "a", "insert", 0),
        (1, "a", "update_preimage", 1),
        (2, "b", "update_postimage", 1),
        (2, "b", "delete", 4),
    ]
    assert decoder(**IMAGES).decode(CHANGES).bad == []


def test_deletes_can_be_left_out() -> None:
    """With 'scan.deletes' = 'drop', those of null values and of moved keys too."""
    schema = columns("id#", "name")
    assert shown(CHANGES, schema, **BOTH_KEYS, **{"scan.deletes": "drop"}) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("before", [None, (None, "a")])
def test_the_key_of_the_message_stands_in_for_that_of_the_row(before: Any) -> None:
    """Where the row has no key column, or there is no row."""
    batch = fake_batch((key(7), envelope("d", before)), (key(8), envelope("c", None, (None, "n"))))
    assert shown(batch, **BOTH_KEYS) == [(7, None, "delete", 0), (8, "n", "upsert", 1)]


def test_rows_without_a_key_are_bad() -> None:
    """NULL in a key column says nothing of which row changed, wherever the NULL comes from."""
    batch = fake_batch(
        (b'{"id":null}', envelope("c", None, (None, "a"))), (b'{"id":null}', None), (key(1), envelope("c", None, (1, "a"))),
        (b'{"id":null}', envelope("c", None, ("x", "a"))),
    )  # fmt: skip
    lenient = {"value.debezium-json.ignore-parse-errors": "true"}
    assert bad(batch, **BOTH_KEYS, **lenient) == [(0, "null-key"), (1, "null-key"), (3, "null-key")]
    assert bad(batch, **ROW_KEY, **lenient) == [(0, "null-key"), (3, "null-key")]
    assert shown(batch, **BOTH_KEYS, **lenient) == [(1, "a", "upsert", 2)]


def test_bad_messages_are_rows_with_their_error() -> None:
    """With 'error-handling.mode' = 'column', at their place among the rows; a message with a bad key shows none of its rows."""
    schema = columns("id#", CHANGE, OFFSET, ERROR)
    batch = fake_batch(
        (key(1), envelope("x")), (key(1), envelope("u", (1,), (2,))), (b"?", envelope("u", (1,), (2,))), (None, envelope("c", None, (3,))),
        (key(3), None),
    )  # fmt: skip
    found = shown(batch, schema, **BOTH_KEYS, **{"error-handling.mode": "column"})
    assert [(*each[:3], each[3] and each[3]["stage"]) for each in found] == [
        (None, None, 0, "value"),
        (1, "delete", 1, None),
        (2, "upsert", 1, None),
        (None, None, 2, "key"),
        (None, None, 3, "null-key"),
        (3, "delete", 4, None),
    ]
    assert found[0][3]["value"] == envelope("x")


def test_except_key() -> None:
    """The value's columns are those of the row but for the key, which comes from the message alone."""
    batch = fake_batch(
        (key(5), envelope("c", None, (1, "a"))), (key(5), envelope("d")), (key(6), None)
    )
    found = shown(batch, **BOTH_KEYS, **{"value.fields-include": "EXCEPT_KEY"})
    assert found == [(5, "a", "upsert", 0), (5, None, "delete", 1), (6, None, "delete", 2)]


def test_a_snapshot_of_messages_with_two_keys() -> None:
    """The last change of each key counts, whichever message it came in."""
    batch = fake_batch(
        (key(1), envelope("c", None, (1, "a"))), (key(2), envelope("c", None, (2, "b"))), (key(3), envelope("u", (1, "a"), (3, "c"))),
        (key(2), envelope("u", (3, "c"), (2, "d"))), (key(9), envelope("d", (9,))),
    )  # fmt: skip
    schema = columns("id#", "name")
    found = decoder(schema, **ROW_KEY, stream=False).decode(batch)
    snapshot = Snapshot(["id"])
    snapshot.add(
        nullable(found, pa.schema([("id", pa.int64()), ("name", pa.string())])), found.deletes
    )
    assert [row for rows in snapshot.rows() for row in rows.to_pylist()] == [{"id": 2, "name": "d"}]


def test_a_share_of_the_keys() -> None:
    """Tasks share the rows by their own keys; bad messages belong to the first task."""
    options = options_of(**ROW_KEY, stream=False)
    schema = columns("id#", "name", OFFSET)
    table = table_to_read(schema, options)
    values = [envelope("c", None, (at, "n")) for at in range(50)] + [
        envelope("u", (at, "n"), (at + 100, "n")) for at in range(50)
    ]
    batch = fake_batch(*((None, value) for value in [*values, b"?"]))
    ranges = RangeDecoder(table, options)
    ((_, whole),) = ranges.decode(batch, None)
    parts = [
        rows for share in range(3) for _, rows in ranges.decode(batch, Share(share, 3, 1, 101))
    ]
    of_parts = [row for part in parts for row in rows_of(part, schema)]
    assert sorted(of_parts, key=repr) == sorted(rows_of(whole, schema), key=repr)
    assert [len(part.bad) for part in parts] == [1, 0, 0]
    keys = [{row[0] for row in rows_of(part, schema)} for part in parts]
    assert all(keys)
    assert len(set().union(*keys)) == sum(map(len, keys)) == 100


def test_offsets_of_rows() -> None:
    """A row knows the offset of its message, among messages without rows."""
    found = decoder(**ROW_KEY).decode(CHANGES)
    assert found.offsets_in(CHANGES).tolist() == [0, 1, 1, 4]
    assert found.deletes.to_pylist() == [False, True, False, True]


SOURCE = {"ts_ms": 1_700_000_000_123, "db": "shop", "schema": "s", "table": "t"}


def test_metadata_of_the_format() -> None:
    """Each row of a message has it; a delete by a null value has none."""
    schema = StructType(
        [
            *columns("id#", CHANGE),
            StructField("at", TimestampType()),
            StructField("local", TimestampNTZType()),
            StructField("db", StringType()),
        ]
    )
    given = {
        "metadata.at": "value.source.timestamp",
        "metadata.local": "value.source.timestamp",
        "metadata.db": "value.source.database",
    }
    batch = fake_batch(
        (key(2), envelope("u", (1,), (2,), source=SOURCE)),
        (key(2), None),
        (key(3), envelope("c", None, (3,))),
    )
    time = datetime(2023, 11, 14, 22, 13, 20, 123_000, timezone.utc)
    local = time.replace(hour=23, tzinfo=None)
    assert shown(batch, schema, zone="Europe/Berlin", **BOTH_KEYS, **given) == [
        (1, "delete", time, local, "shop"),
        (2, "upsert", time, local, "shop"),
        (2, "delete", None, None, None),
        (3, "upsert", None, None, None),
    ]


def test_a_key_message_without_the_key_columns_needs_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The row has them, or the message is a bad one."""
    decoder(**BOTH_KEYS).decode(fake_batch((b'{"ID":1}', envelope("c", after=(1, "a")))))

    assert not [each for each in caplog.messages if each.startswith("Key column")]


def test_a_key_unlike_the_rows_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """The row's key is taken; an update of the key is no such case."""
    moved = fake_batch((key(2), envelope("u", (1,), (2,))), (key(2), envelope("d", (2,))))
    reader = decoder(**BOTH_KEYS)
    reader.decode(moved)
    assert not caplog.records
    other = fake_batch(
        (key(2), envelope("c", None, (2,))), (key(7), envelope("c", None, (3, "a"))), first=40
    )
    for _ in range(2):
        assert rows_of(reader.decode(other), KEYED)[1] == (3, "a", "upsert", 41)
    (record,) = caplog.records
    assert (
        "offset 41: column 'id' of the primary key differs between the row and the message key"
        in record.getMessage()
    )


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_message_whose_key_is_unlike_the_rows_is_named(
    caplog: pytest.LogCaptureFixture, place: int
) -> None:
    """Wherever it is in its batch."""
    messages = [(key(2), envelope("c", None, (2,)))] * 3
    messages[place] = (key(7), envelope("c", None, (3, "a")))
    decoder(**BOTH_KEYS).decode(fake_batch(*messages, first=40))
    (record,) = caplog.records
    assert f"offset {40 + place}: column 'id' of the primary key differs" in record.getMessage()


def test_what_changes_no_row_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A warning names the first such message of a topic."""
    reader = decoder(**ROW_KEY)
    for _ in range(2):
        reader.decode(fake_batch((None, envelope("t")), (None, envelope("t")), first=7))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert (
        "Topic 'orders', partition 3, offset 7 is a truncate of the table ('op' is 't')"
        in record.getMessage()
    )


def test_rows_of_another_table_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Messages whose rows have none of the columns are logged, as with other formats."""
    value = json.dumps({"op": "c", "after": {"order": 1}}).encode()
    assert shown(fake_batch((None, value)), **IMAGES) == [(None, None, "insert", 0)]
    assert "have none of the columns 'id', 'name'" in caplog.text
    assert "The values have the fields 'order'" in caplog.text


def test_rows_of_another_table_are_bad_with_a_key() -> None:
    """A row that lacks the key columns says nothing of a row of this table; others around it are read."""
    value = json.dumps({"op": "c", "after": {"order": 1}}).encode()
    batch = fake_batch((None, value), (None, envelope("c", None, (1, "a"))))
    assert bad(batch, **ROW_KEY) == [(0, "null-key")]
    assert shown(batch, **ROW_KEY) == [(1, "a", "upsert", 1)]


def test_no_messages() -> None:
    """A batch may hold nothing, or nothing but null values."""
    for given in (ROW_KEY, BOTH_KEYS, IMAGES):
        assert shown(fake_batch(), **given) == []
    assert shown(fake_batch((key(1), None)), **IMAGES) == []
    assert shown(fake_batch((key(1), None)), **BOTH_KEYS) == [(1, None, "delete", 0)]

"""Raw messages to rows: upserts, deletes, what cannot be decoded and what a format passes over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.connector.bad_messages import BadMessage
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.reading.message_rows import RowDecoder, Rows
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.metadata import METADATA
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.table import table_to_read
from tests.table_options import table_options
from tests.unit.connector.reading.test_metadata import FakeBatch, fake_batch

CHANGE = StructField("_change_type", StringType())
ERROR = StructField("_error", METADATA["error"].types[0])
OFFSET = StructField("_offset", LongType())


def columns(*fields: StructField | str) -> StructType:
    """A schema; ``"name"`` is a STRING, ``"name#"`` a BIGINT, ``"name!"`` a BIGINT NOT NULL."""
    return StructType(
        [field if isinstance(field, StructField) else _short(field) for field in fields]
    )


def _short(text: str) -> StructField:
    name = text.rstrip("#!")
    return StructField(name, StringType() if name == text else LongType(), not text.endswith("!"))


PLAIN = columns("id#", "name", CHANGE)


def decoder(
    schema: StructType = PLAIN, *, stream: bool = True, zone: str = "UTC", **given: Any
) -> RowDecoder:
    """A decoder of a JSON table keyed by ``id``; options with ``_`` for ``-`` and ``.``."""
    named = {_OPTIONS.get(name, name): value for name, value in given.items()}
    options = read_options(
        table_options(**{"topic": "orders", **named}), format_options, stream=stream
    )
    return RowDecoder(table_to_read(schema, options), options, zone)


_OPTIONS = {
    "key": "primary-key",
    "key_format": "key.format",
    "include": "value.fields-include",
    "prefix": "key.fields-prefix",
    "errors": "error-handling.mode",
    "target": "error-handling.log.target",
    "deletes": "scan.deletes",
    "mode": "read.mode",
    "skip_keys": "key.json.ignore-parse-errors",
    "skip_values": "value.json.ignore-parse-errors",
}


def rows_of(rows: Rows, schema: StructType) -> list[tuple[Any, ...]]:
    """Rows as tuples, checked to have exactly the types that Spark demands."""
    wanted = arrow_schema(schema)
    assert [column.type for column in rows.columns] == wanted.types
    for column in rows.columns:
        column.validate(full=True)
        assert len(column) == len(rows)
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def decoded(batch: FakeBatch, schema: StructType = PLAIN, **options: Any) -> list[tuple[Any, ...]]:
    """The rows of a batch as tuples."""
    return rows_of(decoder(schema, **options).decode(batch), schema)


def bad(batch: FakeBatch, schema: StructType = PLAIN, **options: Any) -> list[tuple[int, str]]:
    """Index and stage of each message that cannot be decoded."""
    return [(each.index, each.stage) for each in decoder(schema, **options).decode(batch).bad]


def test_a_value_is_an_upsert_and_a_null_value_a_delete() -> None:
    """A delete shows its key columns and NULL in every other column."""
    batch = fake_batch(
        (b'{"id":1}', b'{"id":1,"name":"a"}'), (b'{"id":1}', None), (b'{"id":2}', b'{"id":2}')
    )
    assert decoded(batch) == [(1, "a", "upsert"), (1, None, "delete"), (2, None, "upsert")]


def test_a_batch_of_only_deletes_or_of_nothing() -> None:
    """A batch may hold nothing but tombstones, or no message at all."""
    assert decoded(fake_batch((b'{"id":1}', None), (b'{"id":2}', None))) == [
        (1, None, "delete"),
        (2, None, "delete"),
    ]
    assert decoded(fake_batch()) == []


def test_json_null_is_no_delete_and_an_empty_value_neither() -> None:
    """The text ``null``, an empty value and what is no object cannot be decoded; none is a delete."""
    batch = fake_batch(
        *((b'{"id":1}', value) for value in (b"null", b"", b"[1]", b"7", b'"x"', b"not json")),
        (b'{"id":1}', b'{"id":1}{"id":2}'),
    )
    assert decoded(batch) == []
    assert bad(batch) == [(at, "value") for at in range(7)]


def test_bad_keys_bad_values_and_both_have_their_stage() -> None:
    """The stage is ``key``, ``value`` or ``null-key``; of two the key's is told, once a message."""
    good = b'{"id":5,"name":"e"}'
    batch = fake_batch(
        (b"broken", good), (b'{"id":2}', b"broken"), (b"broken", b"broken"), (None, good),
        (None, b"broken"), (b"broken", None), (None, None), (b"", good), (b'{"id":"x"}', good),
        (b'{"id":5}', good),
    )  # fmt: skip
    stages = [
        (0, "key"), (1, "value"), (2, "key"), (3, "null-key"), (4, "null-key"), (5, "key"),
        (6, "null-key"), (7, "key"), (8, "key"),
    ]  # fmt: skip
    assert bad(batch) == stages
    assert decoded(batch) == [(5, "e", "upsert")]


FRAMED = bytes([0, 0, 0, 0, 7, 2, 8]) + b"Asia"
HINT = "with a zero byte and perhaps the schema id 7: the formats 'avro-confluent', 'json-registry' and "


@pytest.mark.parametrize(
    ("message", "options", "stage", "hint"),
    [
        ((b'{"id":1}', FRAMED), {}, "value", HINT),
        ((FRAMED, b'{"id":1}'), {}, "key", HINT),
        ((b'{"id":1}', b'{"id":1,"name":"a"}'), {"value.format": "avro"}, "value", "; it begins with '{', as JSON does"),
        ((b'{"id":1}', b'{"id":1,"name":"a"}'), {"value.format": "csv"}, "value", "; it begins with '{', as JSON does"),
    ],
)  # fmt: skip
def test_a_message_of_another_format_tells_what_it_looks_like(
    message: tuple[bytes, bytes], options: dict[str, str], stage: str, hint: str
) -> None:
    """A registry's prefix, and JSON where it is not expected, are the usual mistakes."""
    (found,) = decoder(**options).decode(fake_batch(message)).bad
    assert found.stage == stage
    assert hint in found.reason


def test_what_looks_like_its_format_gets_no_hint() -> None:
    """Nothing is guessed."""
    (found,) = decoder().decode(fake_batch((b'{"id":1}', b'{"id":'))).bad
    assert "begins" not in found.reason


def test_a_key_column_that_is_null_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Such messages are changes of one row, most often since the column has another name in them."""
    named_otherwise = decoder(columns("ID#", "name", CHANGE), key="ID")
    for first in (5, 9):
        named_otherwise.decode(
            fake_batch((b"{", b""), (b'{"id":1}', b"{}"), (b'{"id":2}', None), first=first)
        )

    (told,) = caplog.messages
    assert told.startswith(
        "Key column 'ID' is NULL in the message at topic 'orders', partition 3, offset 6, whose key is "
        """{"id":1}."""
    )


def test_a_key_column_that_is_not_null_needs_no_word(caplog: pytest.LogCaptureFixture) -> None:
    """Nor one of a message whose key cannot be decoded, or that gives no row of a table."""
    decoder().decode(fake_batch((b'{"id":1}', None), (b"{", b"{}"), (None, b"{}")))
    assert not caplog.messages


def test_good_messages_between_bad_ones_keep_their_own_values() -> None:
    """Rows and metadata stay with their message, whatever messages between them give no row."""
    schema = columns("id#", "name", CHANGE, OFFSET)
    pairs = []
    for at in range(60):
        key, value = b'{"id":%d}' % at, b'{"id":%d,"name":"n%d"}' % (at, at)
        pairs.append(
            [(key, value), (None, value), (b"?", value), (key, b"?"), (key, None), (key, value)][
                at % 6
            ]
        )
    batch = fake_batch(*pairs, first=100)
    expected = [
        (at, f"n{at}", "upsert", 100 + at) if at % 6 != 4 else (at, None, "delete", 100 + at)
        for at in range(60)
        if at % 6 in (0, 4, 5)
    ]
    assert decoded(batch, schema) == expected
    stages = {1: "null-key", 2: "key", 3: "value"}
    assert bad(batch, schema) == [(at, stages[at % 6]) for at in range(60) if at % 6 in stages]


def test_under_all_the_values_copy_of_a_key_column_wins() -> None:
    """Under ALL the value's copy of a key column is shown; where it has none, the key's."""
    batch = fake_batch(
        (b'{"id":1}', b'{"id":10,"name":"a"}'),
        (b'{"id":2}', b'{"name":"b"}'),
        (b'{"id":3}', None),
        (b'{"id":4}', b'{"id":40,"name":null}'),
    )
    assert decoded(batch) == [
        (10, "a", "upsert"), (2, "b", "upsert"), (3, None, "delete"), (40, None, "upsert"),
    ]  # fmt: skip


def test_under_except_key_the_value_has_no_say_in_the_key() -> None:
    """Under EXCEPT_KEY key columns come from the key alone; all other columns NULL is a live row."""
    batch = fake_batch(
        (b'{"id":1}', b'{"id":10,"name":"a"}'),
        (b'{"id":2}', b"{}"),
        (b'{"id":3}', b'{"name":null}'),
    )
    assert decoded(batch, include="EXCEPT_KEY") == [
        (1, "a", "upsert"), (2, None, "upsert"), (3, None, "upsert"),
    ]  # fmt: skip


def test_a_table_of_nothing_but_its_key() -> None:
    """Under EXCEPT_KEY the value of a table that has only key columns is an empty object."""
    schema = columns("id#", CHANGE)
    batch = fake_batch((b'{"id":1}', b"{}"), (b'{"id":2}', None), (b'{"id":3}', b"?"))
    assert decoded(batch, schema, include="EXCEPT_KEY") == [(1, "upsert"), (2, "delete")]
    assert bad(batch, schema, include="EXCEPT_KEY") == [(2, "value")]


def test_a_key_prefix_is_stripped_in_the_message_key() -> None:
    """``key.fields-prefix`` separates a key column from a value column of the same name."""
    schema = columns("k_id#", "id", CHANGE)
    batch = fake_batch((b'{"id":1}', b'{"id":"one"}'), (b'{"id":2}', None), (b'{"k_id":3}', b"{}"))
    options = {"key": "k_id", "prefix": "k_", "include": "EXCEPT_KEY"}
    assert decoded(batch, schema, **options) == [
        (1, "one", "upsert"), (2, None, "delete"), (None, None, "upsert"),
    ]  # fmt: skip


def test_several_key_columns_anywhere_in_the_schema() -> None:
    """Key columns may stand anywhere and in another order than in the key."""
    schema = columns("a", "v", "b#", CHANGE)
    batch = fake_batch((b'{"b":1,"a":"x"}', b'{"v":"one"}'), (b'{"b":2,"a":"y"}', None))
    expected = [("x", "one", 1, "upsert"), ("y", None, 2, "delete")]
    assert decoded(batch, schema, key="b,a") == expected
    assert decoded(batch, schema, key="b,a", include="EXCEPT_KEY") == expected


def test_dropped_deletes_leave_no_row() -> None:
    """``scan.deletes`` = ``drop`` leaves deletes out, and needs no change column."""
    schema = columns("id#", "name", OFFSET)
    batch = fake_batch((b'{"id":1}', b"{}"), (b'{"id":1}', None), (b'{"id":2}', b"{}"))
    assert decoded(batch, schema, deletes="drop") == [(1, None, 0), (2, None, 2)]


def test_a_dropped_delete_with_a_bad_key_is_still_bad() -> None:
    """What cannot be decoded is told, deletes dropped or not."""
    batch = fake_batch((b"?", None), (None, None), (b'{"id":1}', None))
    assert bad(batch, deletes="drop") == [(0, "key"), (1, "null-key")]
    schema = columns("id#", "name", ERROR)
    found = decoded(batch, schema, deletes="drop", errors="column")
    assert [(row[0], row[2]["stage"]) for row in found] == [(None, "key"), (None, "null-key")]


def test_error_mode_column_shows_a_bad_message_as_a_row() -> None:
    """Mode ``column``: ``_error`` and metadata filled, NULL elsewhere, key and kind too."""
    schema = columns("id#", "name", CHANGE, ERROR, OFFSET)
    batch = fake_batch(
        (b'{"id":1}', b'{"id":1,"name":"a"}'), (b'{"id":2}', b"?"), (b"?", b'{"id":3,"name":"c"}'),
        (None, b'{"id":4,"name":"d"}'), (b'{"id":5}', None), (b"?", None), first=7,
    )  # fmt: skip
    found = decoded(batch, schema, errors="column")
    assert [row[:3] for row in found] == [
        (1, "a", "upsert"), (None,) * 3, (None,) * 3, (None,) * 3, (5, None, "delete"), (None,) * 3,
    ]  # fmt: skip
    assert [row[4] for row in found] == [7, 8, 9, 10, 11, 12]
    errors = [row[3] for row in found]
    assert errors[0] is errors[4] is None
    told = [(e["stage"], e["key"], e["value"]) for e in errors if e is not None]
    assert told == [
        ("value", b'{"id":2}', b"?"), ("key", b"?", b'{"id":3,"name":"c"}'),
        ("null-key", None, b'{"id":4,"name":"d"}'), ("key", b"?", None),
    ]  # fmt: skip
    assert all(e["message"] for e in errors if e is not None)


def test_error_mode_column_blanks_nested_columns_too() -> None:
    """A bad message's row is NULL in columns of every type, in exactly the column's type."""
    schema = columns(
        "id#",
        StructField("list", ArrayType(LongType(), containsNull=False)),
        StructField("map", MapType(StringType(), LongType(), valueContainsNull=False)),
        StructField("struct", StructType([StructField("x", LongType(), False)])),
        StructField("at", TimestampNTZType()),
        CHANGE,
        ERROR,
    )
    good = b'{"id":1,"list":[1],"map":{"a":2},"struct":{"x":3},"at":"2024-01-01 00:00:00"}'
    found = decoded(fake_batch((b'{"id":1}', good), (b"?", good)), schema, errors="column")
    assert found[0][1:4] == ([1], [("a", 2)], {"x": 3})
    assert found[1][:6] == (None,) * 6


@pytest.mark.parametrize("mode", ["fail", "ignore", "log"])
def test_other_error_modes_hide_the_bad_message(mode: str) -> None:
    """In the other modes a bad message gives no row here; its fate is decided by who asked."""
    batch = fake_batch((b"?", b"{}"), (b'{"id":1}', b"{}"))
    target = {"target": "letters"} if mode == "log" else {}
    assert decoded(batch, errors=mode, **target) == [(1, None, "upsert")]
    assert bad(batch, errors=mode, **target) == [(0, "key")]


UNREADABLE = {1: "not UTF-8", 2: "not UTF-8", 3: "not UTF-8", 4: "not UTF-8"}


def _unreadable() -> FakeBatch:
    """A good message, then four with unreadable headers: good, a delete, with a bad value, with no key."""
    return fake_batch(
        (b'{"id":1}', b'{"id":1,"name":"a"}'), (b'{"id":2}', b'{"id":2,"name":"b"}'),
        (b'{"id":3}', None), (b'{"id":4}', b"?"), (None, b"{}"), bad_headers=UNREADABLE,
        headers=[[("h", b"x")], (), (), (), ()],
    )  # fmt: skip


def test_headers_that_cannot_be_read_are_unseen_where_nobody_looks() -> None:
    """In a table that shows no headers, nothing is wrong with them; other metadata does not matter."""
    schema = columns("id#", "name", CHANGE, OFFSET)
    assert bad(_unreadable(), schema, errors="ignore") == [(3, "value"), (4, "null-key")]
    assert decoded(_unreadable(), schema, errors="ignore") == [
        (1, "a", "upsert", 0), (2, "b", "upsert", 1), (3, None, "delete", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "metadata"),
    [
        ({"errors": "fail"}, "header-list"),
        ({"errors": "ignore"}, "header-list"),
        ({"errors": "ignore", "metadata.h": "headers"}, "headers"),
        ({"errors": "log", "target": "letters"}, None),
        ({"errors": "ignore", "scan.headers": "h=x"}, None),
    ],
)
def test_headers_that_cannot_be_read_make_a_bad_message(
    options: dict[str, str], metadata: str | None
) -> None:
    """Where they are shown, or sent on, or choose what is read; what is wrong with key or value is said first."""
    name = "h" if "metadata.h" in options else "_headers"
    shown = [StructField(name, METADATA[metadata].types[0])] if metadata else []
    schema = columns("id#", "name", CHANGE, *shown)
    stages = [(1, "headers"), (2, "headers"), (3, "value"), (4, "null-key")]
    assert bad(_unreadable(), schema, **options) == stages
    (row,) = decoded(_unreadable(), schema, **options)
    assert row[:3] == (1, "a", "upsert")


@pytest.mark.parametrize("name", ["headers", "header-list"])
def test_error_mode_column_shows_unreadable_headers_as_null(name: str) -> None:
    """With the other metadata, stage ``headers``, and the message's key and value in ``_error``."""
    schema = columns(
        "id#", "name", CHANGE, ERROR, OFFSET, StructField("h", METADATA[name].types[0])
    )
    found = decoded(_unreadable(), schema, errors="column", **{"metadata.h": name})
    assert [row[:3] for row in found] == [(1, "a", "upsert"), *[(None,) * 3] * 4]
    assert [row[4] for row in found] == [0, 1, 2, 3, 4]
    assert [row[5] for row in found][1:] == [None] * 4
    assert len(found[0][5]) == 1
    told = [(row[3]["stage"], row[3]["key"], row[3]["value"]) for row in found[1:3]]
    assert told == [
        ("headers", b'{"id":2}', b'{"id":2,"name":"b"}'),
        ("headers", b'{"id":3}', None),
    ]


def test_what_a_format_passes_over_gives_no_row_and_no_error() -> None:
    """A format's ``ignore-parse-errors`` acts first, whatever is wrong with the other side."""
    schema = columns("id#", "name", CHANGE, ERROR)
    good = b'{"id":1,"name":"a"}'
    batch = fake_batch(
        (b'{"id":1}', b"?"), (b'{"id":1}', good), (b"?", b"?"), (None, b"?"), (b"?", good),
        (b"?", None), (b'{"id":9}', None), (None, good),
    )  # fmt: skip
    for mode in ("fail", "column"):
        values = decoder(schema, skip_values="true", errors=mode).decode(batch)
        assert [(each.index, each.stage) for each in values.bad] == [
            (4, "key"), (5, "key"), (7, "null-key"),
        ]  # fmt: skip
        keys = decoder(schema, skip_keys="true", errors=mode).decode(batch)
        assert [(each.index, each.stage) for each in keys.bad] == [
            (0, "value"), (3, "null-key"), (7, "null-key"),
        ]  # fmt: skip
        both = decoder(schema, skip_keys="true", skip_values="true", errors=mode).decode(batch)
        assert [(each.index, each.stage) for each in both.bad] == [(7, "null-key")]
    kept = decoded(batch, schema, skip_keys="true", skip_values="true")
    assert kept == [(1, "a", "upsert", None), (9, None, "delete", None)]
    shown = decoded(batch, schema, skip_keys="true", skip_values="true", errors="column")
    assert [row[:3] for row in shown] == [(1, "a", "upsert"), (9, None, "delete"), (None,) * 3]


def test_a_snapshot_hands_over_its_deletes() -> None:
    """For a snapshot deletes are rows with a flag: they have still to do their work."""
    schema = columns("id#", "name")
    batch = fake_batch((b'{"id":1}', b'{"name":"a"}'), (b"?", b"{}"), (b'{"id":1}', None))
    rows = decoder(schema, stream=False).decode(batch)
    assert rows_of(rows, schema) == [(1, "a"), (1, None)]
    assert rows.deletes is not None
    assert rows.deletes.to_pylist() == [False, True]
    assert decoder(schema, stream=False).decode(fake_batch((b'{"id":1}', b"{}"))).deletes is None


def test_a_missing_value_of_a_not_null_column_cannot_be_decoded() -> None:
    """Where NOT NULL is kept, in a snapshot, a message without that value cannot be decoded."""
    schema = columns("id!", "size!")
    pairs = [(b'{"id":1}', b'{"size":1}'), (b'{"id":2}', b"{}"), (b"{}", b'{"id":3,"size":3}')]
    batch = fake_batch(*pairs, (b'{"id":4}', None))
    assert bad(batch, schema, stream=False) == [(1, "value"), (2, "key")]
    rows = decoder(schema, stream=False).decode(batch)
    assert [column.to_pylist() for column in rows.columns] == [[1, 4], [1, None]]


def test_a_not_null_key_column_may_be_missing_in_the_value() -> None:
    """A NOT NULL key column is a promise about the key, not about its copy in the value."""
    schema = columns("id!", "name", CHANGE)
    batch = fake_batch((b'{"id":1}', b'{"name":"a"}'), (b'{"id":2}', None))
    assert decoded(batch, schema) == [(1, "a", "upsert"), (2, None, "delete")]


def test_an_append_source_reads_values_alone() -> None:
    """``append``: every message is a row, its key does not matter, a null value cannot be decoded."""
    schema = columns("id#", "name", OFFSET)
    batch = fake_batch(
        (None, b'{"id":1}'), (b"\xff", b'{"id":2,"name":"b"}'), (b"k", None), (None, b"?"),
        (None, b'{"id":1}'),
    )  # fmt: skip
    options = {"mode": "append", "key": None, "key_format": None}
    assert decoded(batch, schema, **options) == [(1, None, 0), (2, "b", 1), (1, None, 4)]
    assert bad(batch, schema, **options) == [(2, "value"), (3, "value")]
    with_error = columns("id#", ERROR)
    shown = decoded(batch, with_error, errors="column", **options)
    assert [row[0] for row in shown] == [1, 2, None, None, 1]
    assert [row[1] and row[1]["stage"] for row in shown] == [None, None, "value", "value", None]
    assert shown[2][1]["key"] == b"k"


def test_metadata_stands_where_the_schema_has_it() -> None:
    """Metadata columns may stand anywhere, under names of the user's own."""
    schema = columns(
        StructField("at", TimestampNTZType()), "id#", StructField("op", StringType()),
        StructField("Place", LongType()), "_offset",
    )  # fmt: skip
    batch = fake_batch((b'{"id":1}', b'{"_offset":"physical"}'), (b'{"id":2}', None), first=41)
    options = {
        "metadata.at": "timestamp", "metadata.op": "change-type", "metadata.place": "offset",
        "metadata._offset": "none",
    }  # fmt: skip
    found = decoded(batch, schema, zone="-05", **options)
    assert [row[1:] for row in found] == [(1, "upsert", 41, "physical"), (2, "delete", 42, None)]
    assert str(found[0][0]) == "2023-11-14 17:13:20"


def test_many_messages_at_once() -> None:
    """What holds for a few messages holds for many, where formats go other ways."""
    count = 5_000
    pairs = [
        (
            b'{"id":%d}' % at,
            None if at % 7 == 0 else b"?" if at % 1000 == 1 else b'{"name":"n%d"}' % at,
        )
        for at in range(count)
    ]
    rows = decoder().decode(fake_batch(*pairs))
    broken = {at for at in range(count) if at % 1000 == 1 and at % 7}
    assert {each.index for each in rows.bad} == broken
    assert rows_of(rows, PLAIN) == [
        (at, None, "delete") if at % 7 == 0 else (at, f"n{at}", "upsert")
        for at in range(count)
        if at not in broken
    ]


def test_key_columns_of_every_simple_type() -> None:
    """Deletes and missing copies take key columns of every simple type from the key."""
    texts = {
        BooleanType(): "true", ByteType(): "1", ShortType(): "2", IntegerType(): "3", LongType(): "4",
        FloatType(): "0.5", DoubleType(): "0.25", DecimalType(10, 2): "1.50", StringType(): '"s"',
        BinaryType(): '"AAE="', DateType(): '"2024-01-31"', TimestampType(): '"2024-01-31 01:02:03Z"',
        TimestampNTZType(): '"2024-01-31 01:02:03"', DayTimeIntervalType(): "1500",
    }  # fmt: skip
    schema = columns(
        *(StructField(f"k{at}", type_) for at, type_ in enumerate(texts)), "name", CHANGE
    )
    names = [f"k{at}" for at in range(len(texts))]
    fields = zip(names, texts.values(), strict=True)
    key = "{" + ",".join(f'"{name}":{text}' for name, text in fields) + "}"
    batch = fake_batch((key.encode(), key.encode()), (key.encode(), b"{}"), (key.encode(), None))
    found = decoded(batch, schema, key=",".join(names))
    assert found[0][:-1] == found[1][:-1] == found[2][:-1]
    assert None not in found[0][:-2]
    assert isinstance(pa.array([found[0][0]]), pa.BooleanArray)


APPEND_KEYED = {
    "mode": "append", "key": None, "key.fields": "k_id", "prefix": "k_", "include": "EXCEPT_KEY",
}  # fmt: skip


def test_an_append_source_with_columns_of_the_key() -> None:
    """Every message is a row; its key's columns are read, and a message without key or value is bad."""
    schema = columns("k_id#", "name")
    batch = fake_batch(
        (b'{"id":1}', b'{"name":"a"}'), (b'{"id":1}', None), (None, b'{"name":"b"}'), (b'{"id":null}', b"{}")
    )  # fmt: skip

    assert decoded(batch, schema, **APPEND_KEYED) == [(1, "a"), (None, None)]
    assert bad(batch, schema, **APPEND_KEYED) == [(1, "value"), (2, "null-key")]


def test_a_local_time_with_a_watermark() -> None:
    """A time without a zone is shown as TIMESTAMP, as the session's clock shows it, where a DDL has a watermark on it."""
    ddl = """
        CREATE TABLE views (at TIMESTAMP(3), WATERMARK FOR at AS at)
        WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'nowhere:9092', 'format' = 'json')
    """
    schema = StructType([StructField("at", TimestampType())])
    options = read_options({"ddl": ddl}, format_options, stream=True)
    berlin = RowDecoder(table_to_read(schema, options), options, "Europe/Berlin")
    batch = fake_batch((None, b'{"at":"2026-07-01 12:00:00"}'), (None, b"{}"))

    (found,) = berlin.decode(batch).columns

    assert found.cast("int64").to_pylist() == [1782900000_000_000, None]
    assert found.type == arrow_schema(schema).types[0]


def test_not_null_in_a_ddl_tells_how_avro_was_written() -> None:
    """What a DDL declares NOT NULL has no union in Flink's Avro, though a changelog shows it as nullable."""
    ddl = """
        CREATE TABLE t (id BIGINT, name STRING NOT NULL, city STRING, PRIMARY KEY (id) NOT ENFORCED)
        WITH ('connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'nowhere:9092',
          'key.format' = 'json', 'value.format' = 'avro')
    """
    schema = columns("id#", "name", "city", CHANGE)
    options = read_options({"ddl": ddl}, format_options, stream=True)
    batch = fake_batch((b'{"id":1}', b"\x02" + b"\x02a" + b"\x02\x02b"), (b'{"id":1}', None))

    found = RowDecoder(table_to_read(schema, options), options, "UTC").decode(batch)

    assert rows_of(found, schema) == [(1, "a", "b", "upsert"), (1, None, None, "delete")]


@pytest.mark.parametrize("places", [None, np.array([1, 4, 5])])
@pytest.mark.parametrize("deletes", [None, [True, False, True]])
def test_rows_that_are_wanted(places: Any, deletes: list[bool] | None) -> None:
    """With which of them are deletes and where their messages are; messages that cannot be decoded are told all the same."""
    bad = [BadMessage(7, "key", "?")]
    rows = Rows([pa.array(["a", "b", "c"])], deletes and pa.array(deletes), bad, places)

    found = rows.where(np.array([True, False, True]))

    assert [column.to_pylist() for column in found.columns] == [["a", "c"]]
    assert (found.deletes and found.deletes.to_pylist()) == (deletes and [True, True])
    assert found.bad == bad
    assert found.places is not None
    assert found.places.tolist() == ([0, 2] if places is None else [1, 5])


@pytest.mark.parametrize(
    ("given", "key", "value", "name"),
    [
        ({}, b'{"id":1}', b'{"at":"2026-01-31T12:00:00Z"}', "value.json."),
        (
            {"key.format": None, "value.format": "debezium-json"},
            None,
            b'{"op":"c","after":{"id":1,"at":"2026-01-31T12:00:00Z"}}',
            "value.debezium-json.",
        ),
        ({"primary-key": "id,at"}, b'{"id":1,"at":"2026-01-31T12:00:00Z"}', b"{}", "key.json."),
    ],
)
def test_an_error_names_an_option_as_it_is_set(
    given: dict[str, Any], key: bytes | None, value: bytes, name: str
) -> None:
    """With the side and the format before its own name."""
    schema = columns("id#", StructField("at", TimestampType()), CHANGE)
    (found,) = decoder(schema, **given).decode(fake_batch((key, value))).bad

    assert f"'{name}timestamp-format.standard' = 'ISO-8601' reads" in found.reason

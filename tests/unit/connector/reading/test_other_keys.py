"""Key columns that differ between key and value: a delete misses its row, so that the first messages of a topic are compared."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from tests.unit.connector.reading.test_metadata import fake_batch
from tests.unit.connector.reading.test_rows import (
    CHANGE,
    ERROR,
    PLAIN,
    columns,
    decoded,
    decoder,
    rows_of,
)

Pair = tuple[bytes | None, bytes | None]

ONE, TWO = b'{"id":1}', b'{"id":2}'


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings of keys unlike values."""
    return [each for each in caplog.messages if "differs between the value and the message" in each]


def test_a_number_of_eight_bytes_that_is_json(caplog: pytest.LogCaptureFixture) -> None:
    """Its key can be read as a BIGINT: rows are those of the values, and the delete is of another row, which is told."""
    batch = fake_batch((ONE, b'{"id":1,"name":"a"}'), (ONE, None), first=5)
    number = int.from_bytes(ONE, "big")

    found = decoded(batch, key_format="raw")

    assert found == [(1, "a", "upsert"), (number, None, "delete")]
    (warning,) = told(caplog)
    assert warning.startswith(
        "Topic 'orders', partition 3, offset 5: of the primary key, 'id' differs between the value and the message key; it begins "
        "with '{', as JSON does. The row has what its value says, but a message whose value is null deletes the row of its key"
    )
    assert "'key.format'" in warning
    assert str(number) not in warning


TWO_COLUMNS = {"key": "a,b", "key_format": "csv"}
WITH_TEXTS = columns("a", "b", CHANGE)


@pytest.mark.parametrize(
    ("schema", "options", "pairs", "names"),
    [
        (PLAIN, {}, [(ONE, ONE), (ONE, TWO)], "'id'"),
        (PLAIN, {}, [(None, TWO), (ONE, b"?"), (TWO, None), (ONE, TWO)], "'id'"),
        (PLAIN, {"key_format": "csv"}, [(b"1", ONE), (b"0", ONE)], "'id'"),
        (PLAIN, {"key_format": "avro"}, [(b"\x02", TWO)], "'id'"),
        (PLAIN, {"key_format": "raw", "key.raw.endianness": "little-endian"}, [(bytes(7) + b"\1", ONE)], "'id'"),
        (PLAIN, {}, [(ONE, b"{}"), (ONE, TWO)], "'id'"),
        (PLAIN, {"stream": False}, [(ONE, TWO)], "'id'"),
        (WITH_TEXTS, TWO_COLUMNS, [(b"y,x", b'{"a":"x","b":"y"}')], "'a', 'b'"),
        (WITH_TEXTS, TWO_COLUMNS, [(b"x,x", b'{"a":"x","b":"y"}')], "'b'"),
        (WITH_TEXTS, TWO_COLUMNS, [(b"x,x", b'{"b":"y"}')], "'b'"),
    ],
)  # fmt: skip
def test_what_differs(
    caplog: pytest.LogCaptureFixture,
    schema: Any,
    options: dict[str, Any],
    pairs: list[Pair],
    names: str,
) -> None:
    """The first message whose key is another row's, here the last one, is named, with its columns that differ."""
    decoder(schema, **options).decode(fake_batch(*pairs, first=40))

    (warning,) = told(caplog)
    assert warning.startswith(
        f"Topic 'orders', partition 3, offset {39 + len(pairs)}: of the primary key, {names} differs"
    )


@pytest.mark.parametrize(
    ("options", "pairs"),
    [
        pytest.param({}, [(ONE, b'{"id":1,"name":"a"}'), (ONE, None), (TWO, None)], id="the same"),
        pytest.param({}, [(b'{ "id": 1.0 }', ONE)], id="another spelling"),
        pytest.param({}, [(ONE, b"{}"), (ONE, b'{"id":null}')], id="the value has no copy"),
        pytest.param({}, [(b"{}", ONE)], id="the key has none, which is told in another way"),
        pytest.param({}, [(b"?", ONE), (ONE, b"?"), (None, ONE)], id="bad messages"),
        pytest.param(
            {"errors": "column", "scan.headers": "h=x"}, [(ONE, TWO), (ONE, ONE)], id="bad headers"
        ),
        pytest.param({"skip_values": "true"}, [(ONE, b"?")], id="a value that is skipped"),
        pytest.param({"skip_keys": "true"}, [(b"?", ONE)], id="a key that is skipped"),
        pytest.param({"include": "EXCEPT_KEY"}, [(ONE, TWO)], id="a value without key columns"),
        pytest.param({"deletes": "drop"}, [(ONE, TWO), (ONE, None)], id="no deletes"),
        pytest.param({}, [], id="no messages"),
    ],
)
def test_what_does_not_differ(
    caplog: pytest.LogCaptureFixture, options: dict[str, Any], pairs: list[Pair]
) -> None:
    """Nothing is said of keys that are those of the rows, and of messages that are no rows."""
    schema = PLAIN if options.get("errors") is None else columns("id#", CHANGE, ERROR)
    bad = {0: "not UTF-8"} if "scan.headers" in options else {}
    decoder(schema, **options).decode(fake_batch(*pairs, bad_headers=bad))

    assert not told(caplog)


def test_an_append_source_has_no_deletes(caplog: pytest.LogCaptureFixture) -> None:
    """So its keys are not compared."""
    options = {"mode": "append", "key": None, "key.fields": "id"}
    assert decoded(fake_batch((ONE, TWO)), columns("id#"), **options) == [(2,)]
    assert not told(caplog)


@pytest.mark.parametrize(
    ("type_", "one", "same", "other"),
    [
        (BooleanType(), True, True, False),
        (ByteType(), 1, 1, 2),
        (ShortType(), 1, 1, 2),
        (IntegerType(), 1, 1, 2),
        (LongType(), 2**53, 2**53, 2**53 + 1),
        (FloatType(), 0.0, -0.0, 0.5),
        (FloatType(), "NaN", "NaN", 0.0),
        (DoubleType(), -0.0, 0.0, 0.5),
        (DoubleType(), 0.0, 0.0, "NaN"),
        (DecimalType(10, 2), 1.5, 1.50, 1.51),
        (StringType(), "a", "a", "A"),
        (BinaryType(), "AAE=", "AAE=", "AAI="),
        (DateType(), "2026-01-31", "2026-01-31", "2026-01-30"),
        (TimestampType(), "2026-01-31 01:02:03Z", "2026-01-31 01:02:03.0Z", "2026-01-31 01:02:04Z"),
        (TimestampNTZType(), "2026-01-31 01:02:03", "2026-01-31 01:02:03.0", "2026-01-31 01:02:04"),
        (DayTimeIntervalType(), 1500, 1500, 1501),
    ],
)  # fmt: skip
def test_columns_of_every_simple_type(
    caplog: pytest.LogCaptureFixture, type_: DataType, one: Any, same: Any, other: Any
) -> None:
    """They are compared as what they are read to; NaN is NaN, and -0.0 is 0.0."""
    schema = columns(StructField("id", type_), CHANGE)
    key, equal, unlike = (json.dumps({"id": value}).encode() for value in (one, same, other))
    reader = decoder(schema)
    reader.decode(fake_batch((key, equal), (equal, key), (key, b"{}"), (key, None)))
    assert not told(caplog)

    reader.decode(fake_batch((key, unlike), first=7))
    (warning,) = told(caplog)
    assert "offset 7: of the primary key, 'id' differs" in warning


def test_each_topic_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """However many of its messages differ; another topic is told too, and rows stay those of the values."""
    reader = decoder()
    for topic in ("orders", "users", "orders"):
        rows = reader.decode(fake_batch((ONE, TWO), (TWO, ONE), topic=topic))
        assert rows_of(rows, PLAIN) == [(2, None, "upsert"), (1, None, "upsert")]

    assert [warning.split(",")[0] for warning in told(caplog)] == [
        "Topic 'orders'",
        "Topic 'users'",
    ]


@pytest.mark.parametrize(("before", "is_told"), [(999, True), (1_000, False)])
def test_the_first_messages_are_compared(
    caplog: pytest.LogCaptureFixture, before: int, is_told: bool
) -> None:
    """A thousand with a value, in however many batches: reading all of a topic must not take longer."""
    reader = decoder()
    for batch in ([(ONE, ONE), (ONE, None)] * 400, [(ONE, ONE)] * (before - 400) + [(ONE, TWO)]):
        reader.decode(fake_batch(*batch))

    assert bool(told(caplog)) == is_told

"""``debezium-json``: what each envelope becomes, with a primary key and without one."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from typing import Any

import pytest

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.core.errors import SchemaError
from tests.unit.formats.cdc import decoding
from tests.unit.formats.cdc.decoding import DEL, INS, POST, PRE, UPS, change_decoder

rows = partial(decoding.rows, "debezium-json")
decoded = partial(decoding.decoded, "debezium-json")
error = partial(decoding.error, "debezium-json")

HINT = (
    'The "before" field of {} message is null, if you are using Debezium Postgres Connector, please check the Postgres table '
    "has been set REPLICA IDENTITY to FULL level"
)


NO_PAYLOAD = "field 'payload' is null or missing"


def row(id_: Any, name: Any = None) -> dict[str, Any]:
    """A row of the table."""
    return {"id": id_, "name": name}


def envelope(op: Any, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    """An envelope."""
    return {"before": before, "after": after, "op": op, **more}


CREATE = envelope("c", None, row(1, "Ada"))
READ = envelope("r", None, row(2, "Alan"))
UPDATE = envelope("u", row(1, "Ada"), row(1, "Ada L."))
DELETE = envelope("d", row(2, "Alan"))


def test_rows_before_and_after_each_change() -> None:
    """Without a primary key an update gives the row before it and the row after it, in this order."""
    assert rows(CREATE, READ, UPDATE, DELETE) == [
        (0, INS, 1, "Ada"),
        (1, INS, 2, "Alan"),
        (2, PRE, 1, "Ada"),
        (2, POST, 1, "Ada L."),
        (3, DEL, 2, "Alan"),
    ]


def test_upserts_and_deletes_of_a_key() -> None:
    """With a primary key a change is an upsert of the row after it, and a delete has its key alone."""
    assert rows(CREATE, READ, UPDATE, DELETE, key=["id"]) == [
        (0, UPS, 1, "Ada"),
        (1, UPS, 2, "Alan"),
        (2, UPS, 1, "Ada L."),
        (3, DEL, 2, None),
    ]


def test_an_update_of_the_key_is_a_delete_and_an_upsert() -> None:
    """The old key is deleted first."""
    moved = envelope("u", row(1, "Ada"), row(9, "Ada"))
    assert rows(CREATE, moved, key=["id"]) == [
        (0, UPS, 1, "Ada"),
        (1, DEL, 1, None),
        (1, UPS, 9, "Ada"),
    ]
    assert rows(moved, key=["name"]) == [(0, UPS, 9, "Ada")]
    assert rows(moved, key=["id", "name"]) == [(0, DEL, 1, "Ada"), (0, UPS, 9, "Ada")]


@pytest.mark.parametrize("before", [None, {}, {"name": "Ada"}, {"id": None}])
def test_an_update_needs_no_row_before_it_with_a_primary_key(before: Any) -> None:
    """What Postgres' default replica identity leaves out says nothing about the key."""
    update = envelope("u", before, row(1, "Ada L."))
    assert rows(update, key=["id"]) == [(0, UPS, 1, "Ada L.")]
    assert rows(update, key=["id", "name"]) == [(0, UPS, 1, "Ada L.")]


def test_the_row_before_is_read_only_for_the_key() -> None:
    """A value in it that could not be read makes no message bad, if it is not part of the key."""
    message = envelope("u", {"id": 1, "n": "x"}, {"id": 1, "n": 5})
    assert rows(message, columns="id BIGINT, n INT", key=["id"]) == [(0, UPS, 1, 5)]


def test_empty_messages_are_nothing() -> None:
    """They give no row and are no error."""
    assert rows(b"", CREATE, b"", DELETE, b"") == [(1, INS, 1, "Ada"), (3, DEL, 2, "Alan")]
    assert rows(b"") == []
    assert rows() == []


def test_a_truncate_is_passed_over() -> None:
    """It is no row and no error."""
    found = decoded(CREATE, envelope("t"), key=["id"])
    assert found.passed_over == {1: "a truncate of the table ('op' is 't')"}
    assert found.errors == {}
    assert list(found.places) == [0]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"after": row(1)}, 'the message has no "op"'),
        (envelope(None, None, row(1)), 'the message has no "op"'),
        ({"ts_ms": 1}, 'the message has no "op"'),
        ({"status": "BEGIN", "id": "571"}, 'the message has no "op"'),
        ({"source": {}, "ddl": "ALTER TABLE t", "tableChanges": []}, 'the message has no "op"'),
        (envelope("x", None, row(1)), 'unknown "op" value "x", expected one of c, r, u, d, t'),
        (envelope("C", None, row(1)), 'unknown "op" value "C", expected one of c, r, u, d, t'),
        (envelope("c", row(1), None), 'the "after" field of INSERT message is null or missing'),
        (envelope("r"), 'the "after" field of INSERT message is null or missing'),
        (envelope("u", row(1), None), 'the "after" field of UPDATE message is null or missing'),
        (envelope("u", None, row(1)), HINT.format("UPDATE")),
        (envelope("d"), HINT.format("DELETE")),
        ({"op": "d"}, HINT.format("DELETE")),
        (b"[1]", "expected a JSON object, got [1]"),
        (envelope("c", None, {"id": "x"}), "field 'after.id': expected"),
        (envelope("c", None, [1]), "field 'after': expected an object, got [1]"),
        (
            {"schema": {}, "payload": CREATE},
            "the message has no \"op\"; it has a schema and a payload, which 'value.debezium-json.schema-include' = 'true' reads",
        ),
    ],
)
def test_what_cannot_be_decoded(message: Any, why: str) -> None:
    """Each has its sentence, whichever path reads it."""
    assert error(message).startswith(why)


def test_a_delete_without_a_row_needs_the_message_key() -> None:
    """With a primary key it is bad unless the key of messages is read."""
    assert error(envelope("d"), key=["id"]) == HINT.format("DELETE")
    assert rows(envelope("d"), key=["id"], reads_key=True) == [(0, DEL, None, None)]


def deep(levels: int) -> bytes:
    """An envelope whose row nests."""
    return b'{"op":"c","after":' + b'{"a":' * levels + b"1" + b"}" * (levels + 1)


def test_nesting_without_end() -> None:
    """A message of very many levels is an error, and does not exhaust the stack."""
    assert error(deep(500)) == "nested deeper than 250 levels"
    assert decoded(deep(1_000_000)).errors == {0: "nested deeper than 250 levels"}


def test_an_envelope_in_the_envelope_has_none_of_the_columns() -> None:
    """Its fields are no columns, so that the row is NULL everywhere; a warning says so where the row is used."""
    assert rows(envelope("c", None, CREATE)) == [(0, INS, None, None)]
    fields = format_named("debezium-json", "value").fields
    assert fields is not None
    assert set(fields(decoding.text(envelope("c", None, CREATE)))) == {"before", "after", "op"}


def test_ignore_parse_errors() -> None:
    """A field that cannot be read is NULL, and a message that makes no sense is skipped."""
    found = decoded(
        envelope("c", None, {"id": "x", "name": "Ada"}), b"[", envelope("x"), envelope("d"), CREATE,
        ignore_parse_errors="true",
    )  # fmt: skip
    assert decoding.rows_of(found) == [(0, INS, None, "Ada"), (4, INS, 1, "Ada")]
    assert found.skipped == {1, 2, 3}
    assert found.errors == {}


def test_schema_include() -> None:
    """The envelope is in 'payload', and its schema is read only as metadata."""
    messages = [{"schema": {"type": "struct"}, "payload": each} for each in (CREATE, DELETE)]
    assert rows(*messages, schema_include="true") == [(0, INS, 1, "Ada"), (1, DEL, 2, "Alan")]
    found = decoded(*messages, schema_include="true", metadata=["value.schema"])
    assert found.metadata["value.schema"].to_pylist() == ['{"type":"struct"}'] * 2


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"schema": {}}, NO_PAYLOAD),
        ({"schema": {}, "payload": None}, NO_PAYLOAD),
        (
            CREATE,
            f"{NO_PAYLOAD}; it has no schema around it, which 'value.debezium-json.schema-include' = 'false' reads",
        ),
        ({"payload": {"payload": CREATE}}, 'the message has no "op"'),
        ({"payload": envelope("d")}, HINT.format("DELETE")),
    ],
)
def test_schema_include_of_messages_without_one(message: Any, why: str) -> None:
    """A schema without a payload, a payload in the payload and an envelope alone cannot be decoded."""
    assert error(message, schema_include="true") == why


def test_errors_and_rows_keep_their_places_with_schema_include() -> None:
    """Indexes are those of the messages, among bad and empty ones."""
    found = decoded(
        b"", {"payload": CREATE}, {"schema": 1}, b"[", {"payload": UPDATE}, {"payload": {"op": "t"}},
        schema_include="true",
    )  # fmt: skip
    assert [each[:2] for each in decoding.rows_of(found)] == [(1, INS), (4, PRE), (4, POST)]
    assert sorted(found.errors) == [2, 3]
    assert sorted(found.passed_over) == [5]


SOURCE = {
    "version": "2.5",
    "ts_ms": 1_700_000_000_123,
    "db": "shop",
    "schema": "public",
    "table": "people",
    "lsn": 7,
}
TIME = datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=timezone.utc)
SHOWN = {
    "value.ingestion-timestamp": TIME,
    "value.source.timestamp": TIME,
    "value.source.database": "shop",
    "value.source.schema": "public",
    "value.source.table": "people",
    "value.schema": None,
}
PROPERTIES = {name: str(value) for name, value in SOURCE.items()}


@pytest.mark.parametrize("include", ["false", "true"])
@pytest.mark.parametrize(
    "keys",
    [[key] for key in SHOWN if key != "value.schema"]
    + [[*SHOWN][:-1], ["value.source.properties", *SHOWN][:-1]],
)
def test_metadata(keys: list[str], include: str) -> None:
    """Each row of an envelope shows it, alone and together."""
    message = {**UPDATE, "ts_ms": 1_700_000_000_123, "source": SOURCE}
    wrapped = {"schema": None, "payload": message} if include == "true" else message
    found = decoded(wrapped, metadata=keys, schema_include=include)
    wanted = {**SHOWN, "value.source.properties": [*PROPERTIES.items()]}
    for key in keys:
        shown = found.metadata[key].to_pylist()
        assert shown == [wanted[key]] * 2, key


@pytest.mark.parametrize("source", [None, {}, {"db": None, "ts_ms": None}])
def test_metadata_that_is_not_there(source: Any) -> None:
    """It is NULL."""
    keys = ["value.source.timestamp", "value.source.database", "value.ingestion-timestamp"]
    found = decoded({**CREATE, "source": source}, CREATE, metadata=keys)
    assert [found.metadata[key].to_pylist() for key in keys] == [[None, None]] * 3


def test_a_time_beyond_the_year_9999_is_null() -> None:
    """Spark has no such time."""
    found = decoded({**CREATE, "ts_ms": 1 << 60}, metadata=["value.ingestion-timestamp"])
    assert found.metadata["value.ingestion-timestamp"].to_pylist() == [None]


def test_not_null_columns_of_a_snapshot() -> None:
    """A row without a value is bad, and a delete is not."""
    columns = "id BIGINT NOT NULL, name STRING NOT NULL"
    found = decoded(envelope("c", None, row(1)), CREATE, DELETE, columns=columns, key=["id"])
    assert found.errors == {0: "field 'after.name' is NOT NULL, but is null or missing"}
    assert [each[:3] for each in decoding.rows_of(found)] == [(1, UPS, 1), (2, DEL, 2)]


def test_rows_of_keys_alone() -> None:
    """With EXCEPT_KEY the value may have no column at all; each message is a change all the same."""
    found = decoded(CREATE, DELETE, envelope("c"), columns="", key=[], reads_key=True)
    assert [(int(place), kind) for place, kind in zip(found.places, found.kinds, strict=True)] == [
        (0, UPS),
        (1, DEL),
    ]
    assert [*found.errors] == [2]


def test_a_column_that_json_cannot_carry() -> None:
    """It is refused when the query is planned."""
    with pytest.raises(SchemaError, match="non-string as key type of map"):
        change_decoder("debezium-json", "m MAP<INT, INT>")


def test_nested_columns() -> None:
    """Arrays, maps and structs are taken out of the envelope as they are."""
    columns = "id BIGINT, tags ARRAY<STRING>, at STRUCT<x: INT>, more MAP<STRING, INT>"
    value = {"id": 1, "tags": ["a", None], "at": {"x": 3}, "more": {"k": 1}}
    found = rows(envelope("u", value, {**value, "tags": None}), columns=columns)
    assert found == [
        (0, PRE, 1, ["a", None], {"x": 3}, [("k", 1)]),
        (0, POST, 1, None, {"x": 3}, [("k", 1)]),
    ]


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (b"null", b"[" * 248 + b"]" * 248, None),
        (b"null", b"[" * 249 + b"]" * 249, "nested deeper than 250 levels"),
        (b'{"a":NaN}', b"1", "not JSON: NaN is no JSON value"),
        (b'"\\ud800"', b"1", None),
    ],
    ids=["deep", "too deep", "NaN", "half a surrogate pair"],
)
def test_what_was_read_before_decides_nothing(schema, value, why):
    """Whether a schema is known already, and how a message is spelled, makes no difference to what is wrong with it."""
    written = b'{"schema":%s,"payload":{"after":{"id":1,"z":%s},"op":"c"}}'
    message, other = written % (schema, value), written % (schema, b"1")
    expected = {} if why is None else {0: why}
    for before in ([], [other], [other] * 70):
        decoder = change_decoder("debezium-json", "id BIGINT", schema_include="true")
        decoder.decode(before)
        assert decoder.decode([message]).errors == expected
        assert decoder.decode([b" " + message]).errors == expected

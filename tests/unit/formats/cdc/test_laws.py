"""Laws of all CDC formats, with random messages: how messages are put together in batches makes no difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.formats.change_format import ChangeDecoder, DecodedChanges
from tests.laws import FULL, each_of, law
from tests.unit.formats.cdc.decoding import change_decoder, checked, rows_of

COLUMNS = "id BIGINT, name STRING, n INT"

IDS = st.integers(1, 3)
VALUES = {
    "id": IDS | st.sampled_from([None, "x", "2"]),
    "name": st.sampled_from([None, "a", "null", 7, {"b": 1}]),
    "n": st.sampled_from([None, 1, 2, "3", 1.5, [1]]),
}
GOOD = st.fixed_dictionaries(
    {"id": IDS, "name": st.sampled_from([None, "a", "null"]), "n": st.sampled_from([None, 1])}
)
ROWS = GOOD | GOOD | st.fixed_dictionaries({}, optional=VALUES) | st.sampled_from([None, [], 1])
PARTS = (
    st.fixed_dictionaries(
        {},
        optional={"id": IDS, "name": st.sampled_from([None, "a"]), "n": st.sampled_from([None, 1])},
    )
    | st.none()
)
RUBBISH = st.sampled_from(
    [b"", b"{}", b"[", b"null", b'{"op":"c","type":"insert"}', b"\xff", b'{"a":1}{"a":2}']
)


def as_json(message: Any) -> bytes:
    """A message of some fields."""
    return json.dumps(message).encode()


def envelopes(ops: list[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """Messages of a format: an operation, and other fields that may be missing."""
    name, *values = ops
    messages = st.fixed_dictionaries({name: st.sampled_from(values)}, optional=fields)
    return messages.map(as_json) | RUBBISH


BEFORE_AFTER = {"before": ROWS, "after": ROWS}
MESSAGES = {
    "debezium-json": envelopes(["op", "c", "r", "u", "d", "u", "t", "x", None], **BEFORE_AFTER),
    "ogg-json": envelopes(["op_type", "I", "U", "D", "T", "x"], **BEFORE_AFTER),
    "maxwell-json": envelopes(
        ["type", "insert", "update", "update", "delete", "bootstrap-insert", "bootstrap-start", "x"],
        data=ROWS, old=PARTS,
    ),
    "canal-json": envelopes(
        ["type", "INSERT", "UPDATE", "UPDATE", "DELETE", "ALTER", "x"],
        data=st.lists(ROWS, max_size=3) | st.none(), old=st.lists(PARTS, max_size=3) | st.none(),
    ),
}  # fmt: skip


ROW: dict[str, Any] = {"id": 1, "name": "a", "n": 1}
ODD_ROWS: list[Any] = [
    None, [], 1, "x", {}, ROW, {**ROW, "id": 2}, {**ROW, "name": None}, {"id": 1}, {"id": None}, {"id": "x"}, {"id": "2", "name": "null"},
    {**ROW, "name": 7, "n": "3"}, {**ROW, "name": {"b": 1}}, {**ROW, "n": 1.5}, {**ROW, "n": [1]}, {**ROW, "other": "}{"},
]  # fmt: skip
ODD_PARTS: list[Any] = [
    None,
    {},
    {"id": 2},
    {"id": None},
    {"name": None},
    {"name": "b", "n": None},
    {"other": 1},
    [],
    1,
]
ODD_PAIRS = [
    *({"before": row, "after": ROW} for row in ODD_ROWS),
    *({"before": ROW, "after": row} for row in ODD_ROWS),
    *({"before": row} for row in ODD_ROWS),
    *({"after": row} for row in ODD_ROWS),
]
ODD_CHANGES = [
    *({"data": row} for row in ODD_ROWS),
    *({"data": row, "old": {"name": "b"}} for row in ODD_ROWS),
    *({"data": ROW, "old": part} for part in ODD_PARTS),
]
ODD_LISTS = [
    *({name: value if value in (None, 1) else [value] for name, value in change.items()} for change in ODD_CHANGES),
    *({"data": [ROW, row], "old": [{"n": 2}, {"n": 2}]} for row in ODD_ROWS),
    *({"data": rows, "old": old} for rows in ([], [ROW], [ROW, ROW]) for old in ([], [{}], [{}, {"id": 2}], [None, None])),
]  # fmt: skip
ODD_MESSAGES = {
    "debezium-json": [{"op": op, **pair} for op in ("c", "r", "u", "d", "t", "x", "", None, 1) for pair in ODD_PAIRS],
    "ogg-json": [{"op_type": op, **pair} for op in ("I", "U", "D", "T", "x", None) for pair in ODD_PAIRS],
    "maxwell-json": [
        {"type": kind, **change}
        for kind in ("insert", "update", "delete", "bootstrap-insert", "bootstrap-start", "x", None)
        for change in ODD_CHANGES
    ],
    "canal-json": [{"type": kind, **change} for kind in ("INSERT", "UPDATE", "DELETE", "ALTER", "CREATE", "x", None) for change in ODD_LISTS],
}  # fmt: skip
ODD_BYTES = [
    b"", b" ", b"{}", b"[", b"[]", b"null", b"\xff", b'{"a":1}{"a":2}', b'{"a":1}\n{"a":2}', b'{"op":"c"', b'{"op":"c","type":"insert","op_type":"I"}',
    b'\xef\xbb\xbf{"op":"c","after":{"id":1}}', b' {"op":"c","after":{"id":1}}', b'{"op":"c","after":{"id":1}} ', b'{"op":"c","after":{"id":1,"id":2}}',
    b'{"op":"c","op":"d","before":{"id":1},"after":{"id":2}}', b'{"op":"c","after":{"id":1},"after":null}', b'{"op":"c","after":{"id":-0}}',
    b'{"op":"c","after":{"id":NaN}}', b'{"op":"c","after":{"name":"\xff"}}', b'{"op":"c","after":{"id":1},"z":NaN}', b'{"op":"c","after":{"n":1.0}}',
    b'{"op":"c","after":{"name":"\\ud800"}}', b'{"\\u006fp":"c","after":{"id":1}}', b'{"op":"c","z":%b%b,"after":{"id":1}}' % (b"[" * 249, b"]" * 249),
    b'{"op":"c","z":%b%b,"after":{"id":1}}' % (b"[" * 250, b"]" * 250),
]  # fmt: skip


def odd(name: str) -> list[bytes]:
    """Messages of a format with each odd operation and each odd row, and bytes that are none."""
    return [*map(as_json, ODD_MESSAGES[name]), *ODD_BYTES]


def said(decoded: DecodedChanges) -> tuple[Any, ...]:
    """All that is said of some messages."""
    return rows_of(decoded), dict(decoded.errors), decoded.skipped, dict(decoded.passed_over)


def one_by_one(decoder: ChangeDecoder, messages: list[bytes]) -> tuple[Any, ...]:
    """The same of messages that are decoded alone, which is the row path."""
    alone = {message: said(decoder.decode([message])) for message in {*messages}}
    parts = [alone[message] for message in messages]
    return (
        [(at, *row[1:]) for at, part in enumerate(parts) for row in part[0]],
        {at: why for at, part in enumerate(parts) for why in part[1].values()},
        frozenset(at for at, part in enumerate(parts) if part[2]),
        {at: what for at, part in enumerate(parts) for what in part[3].values()},
    )


def copies(messages: list[bytes]) -> list[bytes]:
    """As many messages as the vectorised path needs."""
    return messages * (1 + 70 // max(1, len(messages)))


FORMATS = pytest.mark.parametrize("name", MESSAGES)
KEYS = pytest.mark.parametrize("key", [None, ["id"], ["id", "name"]], ids=["images", "key", "keys"])
LENIENT = pytest.mark.parametrize("lenient", ["false", "true"], ids=["strict", "lenient"])


@FORMATS
@KEYS
@LENIENT
def test_a_batch_is_its_messages(name: str, key: list[str] | None, lenient: str) -> None:
    """What the vectorised path makes of many messages is what the row path makes of each."""
    decoder = change_decoder(name, COLUMNS, key=key, ignore_parse_errors=lenient)

    @example(odd(name)[:: 1 if FULL or lenient == "false" else 5])
    @law(30, few=5)
    @given(st.lists(MESSAGES[name], min_size=1, max_size=30))
    def holds(messages: list[bytes]) -> None:
        many = copies(messages)
        assert said(checked(decoder.decode(many), COLUMNS)) == one_by_one(decoder, many)

    holds()


@FORMATS
@pytest.mark.parametrize("key", [None, ["id"]], ids=["images", "key"])
def test_a_batch_of_one_message_again_and_again_is_its_messages(
    name: str, key: list[str] | None
) -> None:
    """Where nothing else makes the vectorised path refuse the batch."""
    decoder = change_decoder(name, COLUMNS, key=key)
    for message in odd(name)[:: 1 if FULL else 4]:
        many = [message] * 64
        assert said(checked(decoder.decode(many), COLUMNS)) == one_by_one(decoder, many), message


def schema_of(*columns: tuple[str, str]) -> bytes:
    """The schema of Kafka Connect that stands beside an envelope with rows of these columns."""
    row = {"type": "struct", "fields": [{"field": name, "type": kind} for name, kind in columns]}
    images = [{"field": name, **row} for name in ("before", "after")]
    return as_json({"type": "struct", "fields": [*images, {"field": "op", "type": "string"}]})


ODD_SCHEMAS = [
    schema_of(("id", "int64"), ("name", "string"), ("n", "int32")),
    schema_of(("n", "int16"), ("id", "int32"), ("name", "string"), ("other", "bytes")),
    schema_of(("id", "int64"), ("n", "string")),
    b"null",
    b"{",
]
ODD_PLACES = [
    b'{"schema":%b,"payload":%b}',
    b' {"schema" : %b , "payload" : %b } ',
    b'{"schema":%b,"other":{"payload":{}},"payload":%b}',
    b'{"schema":%b,"payload":%b,"payload":null}',
    b'{"schema":%b,"payload":%b',
]
SCHEMAS, PLACES = st.sampled_from(ODD_SCHEMAS), st.sampled_from(ODD_PLACES)


@KEYS
@LENIENT
def test_a_batch_of_messages_with_schemas_is_its_messages(
    key: list[str] | None, lenient: str
) -> None:
    """Those of one schema are decoded together, whichever stand between them."""
    given_options = {"ignore_parse_errors": lenient, "schema_include": "true"}
    decoder = change_decoder("debezium-json", COLUMNS, key=key, **given_options)
    with_schemas = st.builds(lambda *parts: parts[0] % parts[1:], PLACES, SCHEMAS, MESSAGES["debezium-json"])  # fmt: skip

    @example([place % (schema, odd_) for place in ODD_PLACES for schema in ODD_SCHEMAS for odd_ in odd("debezium-json")[::97]])  # fmt: skip
    @law(30, few=5)
    @given(st.lists(with_schemas | RUBBISH, min_size=1, max_size=30))
    def holds(messages: list[bytes]) -> None:
        many = copies(messages)
        assert said(checked(decoder.decode(many), COLUMNS)) == one_by_one(decoder, many)

    holds()


def applied(rows: list[tuple[Any, ...]], removes: Callable[[Change], bool]) -> dict[Any, Any]:
    """The table by its first column."""
    table: dict[Any, Any] = {}
    for _, kind, *values in rows:
        if removes(kind):
            table.pop(values[0], None)
        else:
            table[values[0]] = tuple(values)
    return table


@FORMATS
def test_images_and_upserts_are_the_same_table(name: str) -> None:
    """Rows before and after each change leave the table that upserts and deletes of its key leave."""
    images, upserts = (change_decoder(name, COLUMNS, key=key) for key in (None, ["id"]))

    @each_of("messages", odd(name)[::7])
    @law(50, few=10)
    @given(messages=st.lists(MESSAGES[name], max_size=20))
    def holds(messages: list[bytes]) -> None:
        # A message that is bad only without a key says nothing of rows before; one with a NULL key is bad where rows are used.
        bad = {*images.decode(messages).errors, *upserts.decode(messages).errors}
        good = [message for at, message in enumerate(messages) if at not in bad]
        shown = rows_of(images.decode(good))
        unknown = {row[0] for row in shown if row[2] is None}
        good = [message for at, message in enumerate(good) if at not in unknown]
        removed = (Change.DELETE, Change.UPDATE_PREIMAGE)
        assert applied(rows_of(images.decode(good)), removed.__contains__) == applied(
            rows_of(upserts.decode(good)), removed.__contains__
        )

    holds()


@FORMATS
def test_a_message_has_one_change_of_a_key(name: str) -> None:
    """The offset of a message orders the changes of a key, so it has one of each."""
    decoder = change_decoder(name, COLUMNS, key=["id"])

    @example([])
    @example(odd(name))
    @law(50, few=10)
    @given(st.lists(MESSAGES[name], max_size=20))
    def holds(messages: list[bytes]) -> None:
        changes = [(row[0], row[2]) for row in rows_of(decoder.decode(messages))]
        assert len({*changes}) == len(changes)

    holds()

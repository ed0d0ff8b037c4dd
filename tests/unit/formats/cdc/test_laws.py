"""Laws of all CDC formats, with random messages: how messages are put together in batches makes no difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from pyspark_upsert_kafka.formats.codec import ChangeDecoder, DecodedChanges
from tests.laws import FULL, each_of, law, share
from tests.unit.formats.cdc.corpus import (
    INSERTS,
    MESSAGES,
    ODD_MESSAGES,
    RUBBISH,
    UPDATES,
    as_json,
    odd,
)
from tests.unit.formats.cdc.decoding import change_decoder, checked, rows_of

COLUMNS = "id BIGINT, name STRING, n INT"


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


def test_every_format_in_json_has_messages() -> None:
    """So a new one keeps these laws, those of metadata, and those of odd texts."""
    in_json = {name for name in CDC_FORMATS if name.endswith("-json")}

    for messages in (MESSAGES, ODD_MESSAGES, INSERTS, UPDATES):
        assert {*messages} == in_json, "tests/unit/formats/cdc/corpus.py"


@FORMATS
@KEYS
@LENIENT
def test_a_batch_is_its_messages(name: str, key: list[str] | None, lenient: str) -> None:
    """What the vectorised path makes of many messages is what the row path makes of each.

    In `make test` an odd message is read either as rows before and after its change, or as a change of its key.
    """
    decoder = change_decoder(name, COLUMNS, key=key, ignore_parse_errors=lenient)
    number = len(key or [])

    @example(share(odd(name), number, 10 if lenient == "true" else 6 if number == 2 else 2))
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
    for message in share(odd(name), 4 * len(key or []), 8):
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

    @example([place % (schema, odd_) for place in ODD_PLACES for schema in ODD_SCHEMAS for odd_ in odd("debezium-json")[:: 97 if FULL or lenient == "false" else 300]])  # fmt: skip
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

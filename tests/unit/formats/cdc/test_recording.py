"""The recorded topic of Debezium, which other tests read: ``tools/recorded_debezium``."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import pytest

from tools.recorded_debezium import (
    HEARTBEAT_TOPIC,
    TOPIC,
    TRANSACTION_TOPIC,
    UNAVAILABLE,
    Message,
    Recorded,
    record,
)

WHAT = Recorded(seed=5, rows=10, transactions=120)


def payload(message: Message) -> dict[str, Any]:
    """The payload of a value."""
    assert message.value is not None
    found: dict[str, Any] = json.loads(message.value)["payload"]
    return found


def changes(what: Recorded = WHAT) -> list[dict[str, Any]]:
    """The payloads of the table's topic."""
    return [payload(each) for each in record(what).messages if each.topic == TOPIC and each.value]


def test_equal_seeds_give_equal_bytes():
    """A failure can be repeated."""
    assert record(WHAT).messages == record(WHAT).messages
    assert record(WHAT).messages != record(Recorded(seed=6, rows=10, transactions=120)).messages


def test_a_snapshot_stands_before_the_changes():
    """The first and the last of its messages say so."""
    found = changes()

    assert [each["source"]["snapshot"] for each in found[:10]] == ["first", *["true"] * 8, "last"]
    assert {each["op"] for each in found[:10]} == {"r"}
    assert {each["source"]["snapshot"] for each in found[10:]} == {"false"}
    assert {each["op"] for each in found[10:]} == {"c", "u", "d"}


def test_parts():
    """The snapshot, the changes of the same columns, and those since there is one more; a part may be empty."""
    parts = record(WHAT).parts
    rows = [
        {len(payload(each)["after"]) for each in part if each.topic == TOPIC and each.value and payload(each)["after"]}
        for part in parts.values()
    ]  # fmt: skip

    assert [*parts] == ["snapshot", "changes", "added-column"]
    assert {payload(each)["op"] for each in parts["snapshot"]} == {"r"}
    assert rows == [{13}, {13}, {14}]
    assert record(Recorded(transactions=0)).parts["added-column"] == []


def test_a_delete_is_followed_by_a_tombstone():
    """The tombstone has the same key."""
    messages = [each for each in record(WHAT).messages if each.topic == TOPIC]

    for message, following in itertools.pairwise(messages):
        if message.value is not None:
            is_delete = payload(message)["op"] == "d"
            assert (following.value is None) == is_delete
            assert following.key == message.key or not is_delete


def test_a_key_that_changes_is_a_delete_and_a_create_in_a_transaction():
    """The created row is the deleted one under another key, as Postgres says it."""
    found = changes(Recorded(seed=5, rows=10, transactions=120, replica_identity="full"))

    moved = [
        (old, new)
        for old, new in itertools.pairwise(found)
        if old["op"] == "d"
        and new["op"] == "c"
        and {**old["before"], "id": 0} == {**new["after"], "id": 0}
    ]
    assert moved
    assert all(old["transaction"]["id"] == new["transaction"]["id"] for old, new in moved)


def test_a_column_is_added_in_the_middle():
    """The schema of each message has the fields of its payload."""
    widths = set()
    for message in record(WHAT).messages:
        if message.topic == TOPIC and message.value:
            whole = json.loads(message.value)
            (after,) = [each for each in whole["schema"]["fields"] if each["field"] == "after"]
            names = [each["field"] for each in after["fields"]]
            row = whole["payload"]["after"] or whole["payload"]["before"]
            assert [*row] == names
            widths.add(len(names))

    assert len(widths) == 2


def test_an_update_does_not_say_a_long_text_that_it_did_not_change():
    """Nor is the row before it there; with the whole row as replica identity, both are."""
    texts = [each["after"]["about"] for each in changes() if each["op"] == "u"]
    full = changes(Recorded(seed=5, rows=10, transactions=120, replica_identity="full"))

    assert UNAVAILABLE in texts
    assert all(each["before"] is None for each in changes() if each["op"] == "u")
    assert all(each["before"] for each in full if each["op"] == "u")
    assert UNAVAILABLE not in [each["after"]["about"] for each in full if each["op"] == "u"]


def test_every_update_says_a_short_text():
    """Postgres leaves out only what is too long for a page."""
    recording = record(Recorded(seed=5, rows=10, transactions=120, text_length=20))

    assert recording.table == recording.as_sent
    assert {len(row["about"]) for row in recording.table.values() if row["about"]} == {20}


def test_the_tables_are_what_the_changes_amount_to():
    """Both tables have the same keys, and differ by what Postgres did not say."""
    recording = record(WHAT)

    assert recording.table.keys() == recording.as_sent.keys()
    for key, row in recording.table.items():
        sent = recording.as_sent[key]
        assert [*row] == [column.name for column in recording.columns]
        assert {name for name in row if row[name] != sent[name]} <= {"about"}
        assert sent["about"] in (row["about"], UNAVAILABLE)


def test_transactions_and_heartbeats_have_topics_of_their_own():
    """Each transaction begins and ends, and its end counts its changes."""
    recording = record(WHAT)
    topics = Counter(each.topic for each in recording.messages)
    ends = [
        payload(each)
        for each in recording.messages
        if each.topic == TRANSACTION_TOPIC and b'"END"' in (each.value or b"")
    ]

    assert topics[TRANSACTION_TOPIC] == 2 * len(ends) == 240
    assert topics[HEARTBEAT_TOPIC] == 4
    assert sum(each["event_count"] for each in ends) == len(changes()) - 10


@pytest.mark.parametrize("key_schemas", [True, False])
@pytest.mark.parametrize("value_schemas", [True, False])
def test_keys_and_values_come_with_their_schemas_or_without(key_schemas, value_schemas):
    """What the two converters of a connector are set to."""
    recording = record(Recorded(key_schemas=key_schemas, value_schemas=value_schemas))

    for message in recording.messages:
        assert ([*json.loads(message.key)] == ["schema", "payload"]) == key_schemas
        if message.value is not None:
            assert ([*json.loads(message.value)] == ["schema", "payload"]) == value_schemas

"""The recorded topic beside what Debezium writes for the same SQL; not part of ``make test`` but run by ``make test-debezium``."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tools.debezium.engine import engine
from tools.debezium.postgres import postgres
from tools.recorded_debezium import HEARTBEAT_TOPIC, Message, Recorded, record


@pytest.mark.parametrize("replica_identity", ["default", "full"])
@pytest.mark.parametrize("schemas", [True, False])
def test_the_recording_is_what_debezium_writes(
    tmp_path: Path, replica_identity: Any, schemas: bool
) -> None:
    """Every message of the table, and of its transactions, is the same but for times and places in the log."""
    what = Recorded(
        7,
        rows=5,
        transactions=40,
        value_schemas=schemas,
        key_schemas=schemas,
        replica_identity=replica_identity,
    )
    recording = record(what)
    expected = [comparable(each) for each in recording.messages if each.topic != HEARTBEAT_TOPIC]

    with postgres() as server:
        server.run(*recording.before)
        with engine(server, tmp_path, schemas=schemas) as messages:
            others = (each for each in messages if each.topic != HEARTBEAT_TOPIC)
            found = list(islice(others, what.rows))
            for statements in recording.transactions:
                server.run(*statements)
            found += islice(others, len(expected) - what.rows)

    for at, (real, ours) in enumerate(zip(map(comparable, found), expected, strict=True)):
        assert real == ours, f"message {at}"
    assert {before_payload(each) for each in found} == {
        before_payload(e) for e in recording.messages if e.topic != HEARTBEAT_TOPIC
    }


VARYING = {"ts_ms", "ts_us", "ts_ns", "txId", "lsn", "sequence"}


def comparable(message: Message) -> tuple[str, Any, Any]:
    """A message without what differs from run to run."""
    return message.topic, without(parsed(message.key)), without(parsed(message.value))


def before_payload(message: Message) -> bytes:
    """The bytes of a value before its payload, which are the schema's."""
    before, mark, _ = (message.value or b"").partition(b',"payload":')
    return before if mark else b""


def parsed(text: bytes | None) -> Any:
    """The JSON of a key or a value, in which the order of fields counts."""
    return None if text is None else json.loads(text, object_pairs_hook=list)


def without(value: Any) -> Any:
    """The JSON without times, and with transactions by no name."""
    if not isinstance(value, list):
        return value
    return [
        (pair[0], "…")
        if is_varying(pair)
        else without(pair)
        if not isinstance(pair, tuple)
        else (pair[0], without(pair[1]))
        for pair in value
    ]


def is_varying(pair: Any) -> bool:
    """Whether it is a field with a time, a place in the log, or the name of a transaction."""
    if not isinstance(pair, tuple):
        return False
    return pair[0] in VARYING or (pair[0] in ("id", "version") and isinstance(pair[1], str))

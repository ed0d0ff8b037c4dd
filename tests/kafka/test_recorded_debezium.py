"""The command that writes a recorded topic of Debezium: ``python -m tools.recorded_debezium``."""

from __future__ import annotations

import sys

import pytest

from pyspark_upsert_kafka import LocalKafka
from tests.conftest import broker_at
from tools.recorded_debezium import TOPIC, Recorded, record
from tools.recorded_debezium.__main__ import main

pytestmark = pytest.mark.long("has a broker of its own")


def test_the_topics_are_written_to_a_broker(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker has the messages of the recording, and of a part that is written again; the last lines say what the table is."""
    recording = record(
        Recorded(
            3, rows=4, transactions=30, value_schemas=False, key_schemas=False,
            replica_identity="full", text_length=20,
        )
    )  # fmt: skip
    with LocalKafka() as kafka:
        for part in ("all", "changes"):
            given = ["--bootstrap-servers", kafka.bootstrap_servers, "--seed", "3", "--rows", "4"]
            more = ["--transactions", "30", "--without-schemas", "--part", part]
            monkeypatch.setattr(sys, "argv", ["recorded", *given, *more])
            main()
        found = broker_at(kafka.bootstrap_servers).pairs(TOPIC)

    written = [*recording.messages, *recording.parts["changes"]]
    assert found == [(each.key, each.value) for each in written if each.topic == TOPIC]
    assert f"{len(recording.table)} rows in the end" in capsys.readouterr().out

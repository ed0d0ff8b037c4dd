"""Which Apache Kafka a `LocalKafka` runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_upsert_kafka import BrokerError
from pyspark_upsert_kafka.kafka.local.broker import chosen_jars


def test_another_kafka_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOCAL_KAFKA_JARS is taken as it stands, whatever the folder in which the broker runs later."""
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-3.9.2.jar").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCAL_KAFKA_JARS", "libs")

    assert chosen_jars() == tmp_path / "libs"


def test_a_folder_without_a_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before any JVM starts, with what the variable should name."""
    monkeypatch.setenv("LOCAL_KAFKA_JARS", str(tmp_path))

    with pytest.raises(BrokerError, match=r"LOCAL_KAFKA_JARS must name the folder.*'libs'"):
        chosen_jars()

"""``show`` and ``local-kafka``, run as a person runs them."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

from pyspark_upsert_kafka.cli import main
from tests.conftest import Broker, broker_at

TABLE = ["--schema", "user_id BIGINT, region STRING", "--primary-key", "user_id"]


@pytest.fixture
def users(broker: Broker) -> str:
    """A topic in which user 1 moves and user 2 is deleted."""
    topic = broker.topic()
    broker.produce(
        topic,
        ('{"user_id":1}', '{"user_id":1,"region":"Asia"}'),
        ('{"user_id":2}', '{"user_id":2,"region":"Asia"}'),
        ('{"user_id":1}', '{"user_id":1,"region":"Europe"}'),
        ('{"user_id":2}', None),
    )
    return topic


def show(broker: Broker, topic: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs ``show`` as a program."""
    command = [sys.executable, "-m", "pyspark_upsert_kafka", "show", "--topic", topic]
    return subprocess.run(
        [*command, "--bootstrap-servers", broker.servers, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_table_is_printed_and_nothing_else(broker: Broker, users: str) -> None:
    """``show`` prints the table that the topic holds; Spark's log is not in the way."""
    run = show(broker, users, *TABLE)
    printed = [line for line in run.stdout.splitlines() if line]

    assert run.stderr == ""
    assert printed == [
        "+-------+------+",
        "|user_id|region|",
        "+-------+------+",
        "|1      |Europe|",
        "+-------+------+",
    ]
    assert run.returncode == 0


def test_changelog_has_every_change_and_the_deletes(broker: Broker, users: str) -> None:
    """``--changelog`` prints each message in its order, deletes too, and where it is."""
    run = show(broker, users, *TABLE, "--changelog")
    rows = [line.strip("|").split("|") for line in run.stdout.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]

    assert run.stderr == ""
    assert [[*row[:3], *row[4:]] for row in cells] == [
        ["_change_type", "user_id", "region", "_partition", "_offset"],
        ["upsert", "1", "Asia", "0", "0"],
        ["upsert", "2", "Asia", "0", "1"],
        ["upsert", "1", "Europe", "0", "2"],
        ["delete", "2", "NULL", "0", "3"],
    ]


def test_message_that_does_not_fit_the_schema_is_one_sentence(broker: Broker, users: str) -> None:
    """An error from within Spark's workers is told as our sentence, without a traceback."""
    run = show(broker, users, "--schema", "user_id BIGINT, region INT", "--primary-key", "user_id")

    assert run.returncode == 1
    assert f"topic '{users}', partition 0, offset 0" in run.stderr
    assert "Traceback" not in run.stderr


def test_key_that_is_no_column_is_told_in_our_words(broker: Broker, users: str) -> None:
    """A misspelt key is a SchemaError that lists the columns, not Spark's error on sorting."""
    run = show(broker, users, "--schema", "user_id BIGINT", "--primary-key", "usr_id")

    assert run.returncode == 1
    assert "Could not find the field 'usr_id'" in run.stderr


@pytest.mark.parametrize("arguments", [[], TABLE[:2], TABLE[2:]])
def test_without_schema_or_key_the_first_message_is_a_hint(
    broker: Broker, users: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is inferred: what is missing is said, with a message to look at."""
    code = main(["show", "--topic", users, "--bootstrap-servers", broker.servers, *arguments])
    said = capsys.readouterr().err

    assert code == 1
    assert "--schema" in said
    assert "--primary-key" in said
    assert 'key    {"user_id":1}' in said
    assert 'value  {"user_id":1,"region":"Asia"}' in said


def test_hint_for_an_empty_topic_says_that_it_is_empty(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is no message to show, that is said."""
    topic = broker.topic()

    assert main(["show", "--topic", topic, "--bootstrap-servers", broker.servers]) == 1
    assert f"Topic '{topic}' has no message yet." in capsys.readouterr().err


def test_missing_topic_is_said(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    """A topic that does not exist is the connector's own sentence."""
    assert main(["show", "--topic", "none-such", "--bootstrap-servers", broker.servers]) == 1
    assert "Topic 'none-such' does not exist" in capsys.readouterr().err


def test_local_kafka_runs_until_it_is_told_to_stop() -> None:
    """``local-kafka`` prints its address, serves, and ends in good order on SIGTERM."""
    program = subprocess.Popen(
        [sys.executable, "-m", "pyspark_upsert_kafka", "local-kafka", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert program.stdout is not None
        lines = iter(program.stdout.readline, "")
        address = next(filter(None, (re.search(r"runs at (\S+)", line) for line in lines)))[1]
        other = broker_at(address)
        topic = other.topic()
        other.produce(topic, ("k", "v"))

        assert other.pairs(topic) == [(b"k", b"v")]
        program.send_signal(signal.SIGTERM)
        assert program.wait(60) == 0
    finally:
        program.kill()
        program.communicate()

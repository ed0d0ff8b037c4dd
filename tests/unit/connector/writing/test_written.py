"""What is counted as written, and what a commit reports."""

from __future__ import annotations

import pytest
from pyspark.sql.datasource import WriterCommitMessage

from pyspark_upsert_kafka.connector import reported_writes
from pyspark_upsert_kafka.connector.reported_writes import WrittenByTask, report_batch
from pyspark_upsert_kafka.connector.writing.delivery import SentMessages
from pyspark_upsert_kafka.core.positions.progress import Written
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, octets

RUN = "a run"


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What a listener would be told."""
    told: list[tuple[object, ...]] = []
    monkeypatch.setattr(reported_writes, "report", lambda *given: told.append(given))
    return told


def test_rows_tombstones_and_the_bytes_of_keys_and_values() -> None:
    """An empty value is none; parts of a larger column count as what they are."""
    messages = Messages("t", octets([b"k", b"long key", b"l"]), octets([b"value", None, b""]))
    sent = SentMessages()
    assert sent.total == Written(0, 0, 0)
    sent.add(messages)
    assert sent.total == Written(2, 1, 15)
    sent.add(messages.part(1, 2))
    assert sent.total == Written(2, 2, 23)


def test_a_commit_reports_all_tasks(reported: list[tuple[object, ...]]) -> None:
    """Once for the batch, with what all tasks together have written."""
    report_batch([WrittenByTask(RUN, 4, Written(1, 1, 9)), WrittenByTask(RUN, 4, Written(2, 0, 8))])

    assert reported == [(RUN, 4, Written(3, 1, 17))]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [None, WriterCommitMessage()],
        [WrittenByTask(None, None, Written(1, 0, 1))],
        [WrittenByTask(RUN, None, Written(1, 0, 1))],
        [WrittenByTask(RUN, 1, Written(1, 0, 1)), WrittenByTask("other", 1, Written(1, 0, 1))],
    ],
    ids=["no task", "no numbers", "a batch job", "no batch", "two runs"],
)
def test_what_belongs_to_no_micro_batch_is_not_reported(
    reported: list[tuple[object, ...]], messages: list[WriterCommitMessage | None]
) -> None:
    """It could not be told which query has written it."""
    report_batch(messages)

    assert reported == []

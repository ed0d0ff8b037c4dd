"""One task's rows: the error that a task has is what the user sees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import LongType, StringType, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.spark_task import TaskIdentity, current_task
from pyspark_upsert_kafka.connector.writing import delivery, writer
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import EncodeError, OptionError
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import table_to_write
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, list_of
from tests.table_options import table_options

SCHEMA = StructType().add("id", LongType()).add("_change_type", StringType())
OPTIONS = table_options()


class FakeSender:
    """Counts messages; closing it fails when told to."""

    def __init__(self, *, closing_fails: bool = False) -> None:
        self.closing_fails = closing_fails
        self.sent = self.closed = 0
        self.sizes: list[int] = []

    def send(self, messages: Messages) -> None:
        """Counts."""
        self.sent += len(messages)
        self.sizes.append(sum(len(value or b"") for value in list_of(messages.values)))

    def flush(self) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        """Fails or not."""
        self.closed += 1
        if self.closing_fails:
            raise OSError("closing failed")


def write(
    monkeypatch: pytest.MonkeyPatch, sender: FakeSender, *batches: pa.RecordBatch, **more: str
) -> None:
    """Writes these batches to this sender."""
    monkeypatch.setattr(delivery, "open_sender", lambda *_, **__: sender)
    options = write_options({**OPTIONS, **more}, format_options)
    delivery.write_rows(iter(batches), table_to_write(SCHEMA, options), options, current_task())


def rows(*data: tuple[int | None, str]) -> pa.RecordBatch:
    """Rows as Spark hands them over."""
    ids, kinds = zip(*data, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(ids, pa.int64()), pa.array(kinds, pa.string())], ["id", "_change_type"]
    )


def test_closing_does_not_replace_the_error_of_the_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was wrong first is raised; what went wrong while closing is in the log."""
    sender = FakeSender(closing_fails=True)
    with pytest.raises(EncodeError, match="'id'"):
        write(monkeypatch, sender, rows((1, "+I")), rows((None, "+I")))
    assert sender.closed == 1
    assert "closing failed" in caplog.text


def test_a_failing_close_after_all_was_written_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing else was wrong it is not swallowed."""
    with pytest.raises(OSError, match="closing failed"):
        write(monkeypatch, FakeSender(closing_fails=True), rows((1, "+I")))


def test_rows_of_a_batch_with_a_refused_preimage_are_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error comes before any row of those that Spark hands over with the preimage."""
    sender = FakeSender()
    with pytest.raises(OptionError, match="'sequence-by'"):
        write(
            monkeypatch, sender, rows((1, "+I")), rows((2, "+I"), (1, "-U")),
            **{"upsert-sink.order": "unknown"},
        )  # fmt: skip
    assert (sender.sent, sender.closed) == (1, 1)


def test_batches_without_rows_open_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task without rows needs no sender."""

    def opened(*_: object, **__: object) -> Iterator[None]:
        raise AssertionError("opened")

    monkeypatch.setattr(delivery, "open_sender", opened)
    options = write_options(OPTIONS, format_options)
    delivery.write_rows(iter(()), table_to_write(SCHEMA, options), options, current_task())


@pytest.fixture
def nothing_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has told nothing yet."""
    monkeypatch.setattr(errors, "_warned", set())


@pytest.mark.usefixtures("nothing_warned")
def test_a_literal_secret_is_told_once_a_query(caplog: pytest.LogCaptureFixture) -> None:
    """Spark makes a writer twice for every micro-batch; `upsert_sink` has told its user already."""
    given = {**OPTIONS, "properties.ssl.key.pem": "geheim"}
    writer.StreamWriter(SCHEMA, {**given, "upsert-sink.order": "in-task"})
    assert caplog.records == []
    for _ in range(4):
        writer.StreamWriter(SCHEMA, given)
    (told,) = [each.getMessage() for each in caplog.records]
    assert "'properties.ssl.key.pem'" in told
    assert "geheim" not in told


@pytest.mark.usefixtures("nothing_warned")
@pytest.mark.parametrize(
    ("speculation", "partition", "order", "times"),
    [("true", 0, None, 1), ("true", 1, None, 0), ("false", 0, None, 0), (None, 0, None, 0),
     ("true", 0, "in-task", 0)],
)  # fmt: skip
def test_speculation_is_told_by_the_first_task(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    speculation: str | None,
    partition: int,
    order: str | None,
    times: int,
) -> None:
    """Only tasks see Spark's settings; of all tasks one tells, unless `upsert_sink` has."""
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    context = TaskContext._getOrCreate()
    context._partitionId = partition
    context._localProperties = {"spark.speculation": speculation} if speculation else {}
    for _ in range(2):
        more = {"upsert-sink.order": order} if order else {}
        write(monkeypatch, FakeSender(), rows((1, "+I")), **more)
    assert (
        len([each for each in caplog.records if "spark.speculation" in each.getMessage()]) == times
    )


LARGE = StructType().add("id", LongType()).add("text", StringType())


def write_texts(monkeypatch: pytest.MonkeyPatch, sender: FakeSender, texts: pa.Array) -> None:
    """Writes a batch of these texts, as Spark hands it over."""
    monkeypatch.setattr(delivery, "open_sender", lambda *_, **__: sender)
    options = write_options({**OPTIONS, "value.fields-include": "ALL"}, format_options)
    ids = pa.array(range(len(texts)), pa.int64())
    batch = pa.RecordBatch.from_arrays([ids, texts], ["id", "text"])
    delivery.write_rows(iter([batch]), table_to_write(LARGE, options), options, TaskIdentity())


def test_a_batch_is_encoded_in_parts_of_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many large rows Spark hands over together: memory grows with a part, not with the batch."""
    monkeypatch.setattr(delivery, "MAX_HELD_BYTES", 1 << 20)
    sender = FakeSender()
    write_texts(monkeypatch, sender, pa.array(["x" * 100_000] * 40 + ["y" * 3_000_000, "z"] * 2))
    assert sender.sent == 44
    assert sum(sender.sizes) > 10_000_000
    assert max(sender.sizes) < 3_100_000
    assert sorted(sender.sizes)[-3] <= 1 << 20


def test_texts_beyond_two_gibibytes_of_one_column_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With Spark's large types a column may hold more bytes than Arrow's ordinary texts can."""
    memory = np.zeros((1 << 31) + 1000, np.uint8)  # pages that nobody writes to cost nothing
    memory[-4:] = np.frombuffer(b"abcd", np.uint8)
    offsets = np.arange(memory.size - 4, memory.size + 1, dtype=np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(memory)]
    sender = FakeSender()
    write_texts(monkeypatch, sender, pa.Array.from_buffers(pa.large_string(), 4, buffers))
    assert sender.sizes == [4 * len(b'{"id":0,"text":"a"}')]

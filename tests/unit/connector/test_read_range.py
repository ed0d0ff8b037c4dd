"""What a task does with a range: rows in Spark's schema, and the fate of bad messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.connector import bad_messages as dead_letters
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.reading import task_reading
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import BrokerError, DecodeError
from pyspark_upsert_kafka.core.metadata import METADATA, Detail
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import LAST_OFFSET, Range
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.kafka.clients import ReadSettings
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, list_of
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options
from tests.unit.connector.reading.test_metadata import FakeBatch, fake_batch
from tests.unit.registry.fake_registry import serving

ID = StructField("id", LongType())
NAME = StructField("name", StringType())
KIND = StructField("_change_type", StringType())
RANGE = Range("orders", 3, 0, 100)


@dataclass
class FakeClient:
    """Gives these batches to whoever reads and keeps what is sent."""

    batches: list[FakeBatch]
    failure: Exception | None = None
    asked: list[ReadSettings] = field(default_factory=list)
    sent: list[Messages] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    read_ranges: list[Range] = field(default_factory=list)

    def reader(self, settings: ReadSettings) -> FakeClient:
        """Itself."""
        self.asked.append(settings)
        return self

    def read(self, range_: Range) -> Iterator[FakeBatch]:
        """The batches that begin in the range."""
        self.read_ranges.append(range_)
        return (
            batch
            for batch in self.batches
            if not len(batch) or range_.begin <= batch.offsets[0] < range_.end
        )

    def end(self, range_: Range) -> int:
        """The end of the last batch."""
        return self.batches[-1].offsets[-1] + 1

    def sender(
        self,
        properties: object,
        topics: tuple[str, ...],
        guarantee: DeliveryGuarantee,
        *,
        with_metadata: bool = True,
    ) -> FakeClient:
        """Itself."""
        assert with_metadata, "letters have headers"
        self.log.append(f"open {topics} {guarantee.value}")
        return self

    def send(self, messages: Messages) -> None:
        """Keeps them."""
        self.sent.append(messages)

    def flush(self) -> None:
        """Confirms, or fails as told."""
        self.log.append("flush")
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """Takes note."""
        self.log.append("close")


@pytest.fixture
def read(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[list[tuple[Any, ...]], FakeClient]]:
    """Reads batches as a task does; gives rows and the client that was used."""

    def reading(
        *batches: FakeBatch,
        columns: tuple[StructField, ...] = (ID, NAME, KIND),
        stream: bool = True,
        range_: Range = RANGE,
        failure: Exception | None = None,
        **given: str,
    ) -> tuple[list[tuple[Any, ...]], FakeClient]:
        client = FakeClient(list(batches), failure)
        for module, name in ((task_reading, "load_client"), (dead_letters, "load_sending_client")):
            monkeypatch.setattr(module, name, lambda *_: client)
        raw = table_options(**{"topic": "orders", **given})
        options = read_options(raw, format_options, stream=stream)
        schema = StructType(list(columns))
        rows = []
        for batch in task_reading.read_ranges((range_,), table_to_read(schema, options), options):
            assert batch.schema.equals(arrow_schema(schema))
            assert batch.num_rows, "an empty batch is a message for nothing"
            rows += [tuple(row.values()) for row in batch.to_pylist()]
        return rows, client

    return reading


GOOD = (b'{"id":1}', b'{"name":"a"}')
BAD = (b'{"id":2}', b"?")
LOG = {"error-handling.mode": "log", "error-handling.log.target": "letters"}


def test_each_batch_gives_its_rows(read: Callable[..., Any]) -> None:
    """Rows come batch by batch; one without rows gives none."""
    rows, client = read(
        fake_batch(GOOD, (b'{"id":1}', None)), fake_batch(), fake_batch(BAD), fake_batch(GOOD),
        **{"error-handling.mode": "ignore"},
    )  # fmt: skip
    assert rows == [(1, "a", "upsert"), (1, None, "delete"), (1, "a", "upsert")]
    (asked,) = client.asked
    assert (asked.read_committed, asked.fail_on_data_loss) == (True, True)


def test_a_worker_compiles_the_codecs_of_a_table_once(read: Callable[..., Any]) -> None:
    """Its next task finds them; those of other columns or options are others."""
    task_reading._row_decoder.cache_clear()
    for given in ({}, {}, {"value.json.ignore-parse-errors": "true"}, {}):
        read(fake_batch(GOOD), **given)

    assert task_reading._row_decoder.cache_info().misses == 2


def test_a_snapshot_comes_at_the_end(read: Callable[..., Any]) -> None:
    """A snapshot reduces all batches and shows NOT NULL columns as they are promised."""
    columns = (StructField("id", LongType(), False), StructField("name", StringType(), False))
    later = fake_batch((b'{"id":1}', b'{"name":"b"}'), (b'{"id":3}', b'{"name":"c"}'), first=10)
    rows, _ = read(
        fake_batch(GOOD, (b'{"id":2}', b'{"name":"x"}')), fake_batch((b'{"id":2}', None), first=5),
        later, columns=columns, stream=False,
        **{"properties.isolation.level": "read_uncommitted", "failOnDataLoss": "false"},
    )  # fmt: skip
    assert rows == [(1, "b"), (3, "c")]


@pytest.mark.parametrize(("followed_to", "letters"), [(0, 2), (LAST_OFFSET, 1)])
def test_bad_messages_past_the_end_are_left_to_the_batch_that_shows_them(
    read: Callable[..., Any], followed_to: int, letters: int
) -> None:
    """The table with which a stream begins sends no dead letter of them, and does not fail."""
    rows, client = read(
        fake_batch(GOOD, BAD), fake_batch(BAD, (b'{"id":3}', b'{"name":"c"}'), first=5),
        range_=replace(RANGE, end=5, kept_until_ms=0, followed_to=followed_to), stream=False, **LOG,
    )  # fmt: skip

    assert sorted(rows) == [(1, "a", "upsert"), *([] if followed_to else [(3, "c", "upsert")])]
    assert sum(len(list_of(sent.keys)) for sent in client.sent) == letters


def test_fail_tells_the_first_bad_message(read: Callable[..., Any]) -> None:
    """``fail`` raises at the first bad message of the range, with its place."""
    with pytest.raises(DecodeError) as error:
        read(fake_batch(GOOD, GOOD, BAD, (None, b"{}"), first=40))
    found = error.value
    assert (found.topic, found.partition, found.offset, found.stage) == ("orders", 3, 42, "value")


def test_ignore_counts_in_the_log(
    read: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """``ignore`` says for each batch how many messages were skipped, and why the first of them."""
    with caplog.at_level(logging.WARNING, "pyspark_upsert_kafka"):
        rows, _ = read(
            fake_batch(GOOD, BAD, (None, b"{}"), BAD, first=7), fake_batch(GOOD),
            **{"error-handling.mode": "ignore"},
        )  # fmt: skip
    assert len(rows) == 2
    (record,) = caplog.records
    text = record.getMessage()
    assert "Skipped 3 messages" in text
    assert "topic 'orders', partition 3" in text
    assert "the first at offset 8 (value)" in text


def test_log_sends_letters_and_waits_for_them(read: Callable[..., Any]) -> None:
    """``log`` sends the message as it was, with what was wrong, and waits until it is confirmed."""
    headers = [(), (("mine", b"1"), ("__error.topic", b"before")), ()]
    batch = fake_batch(
        GOOD,
        BAD,
        (None, None),
        first=7,
        headers=headers,
        timestamp_types=[1, 2, 0],
        timestamps=[5, 6, -1],
    )
    rows, client = read(batch, **LOG)
    assert rows == [(1, "a", "upsert")]
    assert client.log == ["open ('letters',) at-least-once", "flush", "close"]
    assert client.asked[0].details == {Detail.HEADERS, Detail.TIMESTAMP}, "letters carry them"
    (letters,) = client.sent
    assert (letters.topics, list_of(letters.keys), list_of(letters.values)) == (
        "letters",
        [BAD[0], None],
        [BAD[1], None],
    )
    assert letters.headers is not None
    first, second = (list(each or ()) for each in letters.headers)
    assert first[:2] == [("mine", b"1"), ("__error.topic", b"before")]
    assert [(name, value) for name, value in first[2:] if name != "__error.message"] == [
        ("__error.topic", b"orders"), ("__error.partition", b"3"), ("__error.offset", b"8"),
        ("__error.timestamp", b"6"), ("__error.stage", b"value"),
    ]  # fmt: skip
    assert dict(second)["__error.stage"] == b"null-key"


def test_log_sends_on_without_headers_that_cannot_be_read(read: Callable[..., Any]) -> None:
    """Key and value as they were, and the letter says that the headers are missing."""
    batch = fake_batch(GOOD, GOOD, BAD, bad_headers={1: "no UTF-8", 2: "no UTF-8"})
    rows, client = read(batch, **LOG)
    assert rows == [(1, "a", "upsert")]
    (letters,) = client.sent
    assert [row[1:3] for row in letters.rows()] == [GOOD, BAD]
    first, second = (dict(each or ()) for each in letters.headers or ())
    assert first["__error.stage"] == b"headers"
    assert first["__error.message"] == b"no UTF-8. The dead letter is without them"
    assert second["__error.stage"] == b"value"
    assert second["__error.message"].endswith(b"; no UTF-8. The dead letter is without them")
    assert len(first) == len(second) == 6


def test_fail_names_the_message_whose_headers_cannot_be_read(read: Callable[..., Any]) -> None:
    """With topic, partition, offset and stage."""
    headers = StructField("_headers", METADATA["header-list"].types[0])
    with pytest.raises(DecodeError, match=r"partition 3, offset 8.*stage: headers.*no UTF-8"):
        read(
            fake_batch(GOOD, GOOD, first=7, bad_headers={1: "no UTF-8"}),
            columns=(ID, KIND, headers),
        )


def test_log_that_is_not_confirmed_fails_the_task(read: Callable[..., Any]) -> None:
    """A letter that does not arrive fails the task: its message would be lost."""
    with pytest.raises(BrokerError, match="nobody there"):
        read(fake_batch(BAD), failure=BrokerError("nobody there"), **LOG)


def test_column_hides_nothing(read: Callable[..., Any]) -> None:
    """``column`` shows a row for each message, the bad ones too."""
    columns = (ID, KIND, StructField("_error", METADATA["error"].types[0]))
    rows, client = read(fake_batch(GOOD, BAD), columns=columns, **{"error-handling.mode": "column"})
    assert [row[:2] for row in rows] == [(1, "upsert"), (None, None)]
    assert client.sent == []


@pytest.mark.parametrize(
    ("key", "wanted"),
    [("offset", set()), ("topic", set()), ("timestamp", {Detail.TIMESTAMP}),
     ("timestamp-type", {Detail.TIMESTAMP}), ("headers", {Detail.HEADERS}),
     ("header-list", {Detail.HEADERS}), ("leader-epoch", {Detail.LEADER_EPOCH})],
)  # fmt: skip
def test_details_are_asked_for_when_shown(
    read: Callable[..., Any], key: str, wanted: set[Detail]
) -> None:
    """Timestamps, headers and epochs cost something, so each is taken out only for a column that shows it."""
    _, client = read(fake_batch(GOOD))
    assert client.asked[0].details == set()
    column = StructField("m", METADATA[key].types[0])
    _, client = read(fake_batch(GOOD), columns=(ID, KIND, column), **{"metadata.m": key})
    assert client.asked[0].details == wanted


def test_messages_without_the_headers_are_not_decoded(read: Callable[..., Any]) -> None:
    """Those of other types may be anything; their headers are what the client must read."""
    order, other = [("type", b"Order")], [("type", None)]
    pairs = [BAD, GOOD, (None, None), (b'{"id":3}', b'{"name":"c"}')]
    keys, values = (BytesColumn.of(pair[side] for pair in pairs) for side in (0, 1))
    batch = RawBatch("orders", 3, keys, values, [4, 5, 6, 7], headers=[other, order, (), order])

    rows, client = read(batch, **{"scan.headers": "type=Order"})

    assert rows == [(1, "a", "upsert"), (3, "c", "upsert")]
    assert client.asked[0].details == {Detail.HEADERS}


def test_the_last_range_of_each_topic_is_checked_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic's id is compared once for all ranges of the topic that a task reads."""
    client = FakeClient([], None)
    monkeypatch.setattr(task_reading, "load_client", lambda name: client)
    options = read_options(table_options(topic="a;b"), format_options, stream=True)
    table = table_to_read(StructType([ID, NAME, KIND]), options)
    places = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)]
    ranges = [Range(topic, partition, 0, 4, f"id of {topic}") for topic, partition in places]

    list(task_reading.read_ranges(ranges, table, options))

    checked = zip(ranges, [False, True, False, False, True], strict=True)
    assert client.read_ranges == [replace(each, is_checked_after=is_) for each, is_ in checked]


@pytest.mark.parametrize(("mode", "is_asked"), [("fail", False), ("ignore", True)])
def test_nothing_behind_the_message_that_ends_the_read_is_looked_up(
    read: Callable[..., Any], mode: str, is_asked: bool
) -> None:
    """Each schema that the registry does not know takes time, which is spent where its message may be skipped."""
    messages = fake_batch((b'{"id":1}', b"?"), (b'{"id":1}', b"\0\0\0\0\7\2"))
    batch = RawBatch("orders", 3, messages.keys, messages.values, [0, 1])
    with serving() as registry:
        given = {
            "value.format": "avro-confluent",
            "value.avro-confluent.url": registry.url,
            "error-handling.mode": mode,
        }
        with nullcontext() if is_asked else pytest.raises(DecodeError, match="offset 0"):
            read(batch, **given)

        assert ("/schemas/ids/7" in registry.paths()) is is_asked

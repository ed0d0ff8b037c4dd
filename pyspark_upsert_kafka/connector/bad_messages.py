"""Messages that cannot be decoded, what their bytes look like, and what is done with them (``error-handling.mode``).

A dead letter is such a message, sent unchanged to another topic with headers that say why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import DecodeError
from pyspark_upsert_kafka.core.masking import outside_text
from pyspark_upsert_kafka.core.metadata import Detail, Headers
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions, Topics
from pyspark_upsert_kafka.kafka.clients import load_sending_client
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

logger = logging.getLogger("pyspark_upsert_kafka")

Stage = Literal["key", "value", "null-key", "headers"]
"""What of a message cannot be decoded."""


_WITHOUT_PREFIX = frozenset({"json", "csv", "avro", "protobuf"})
"""Formats whose messages have no prefix of a schema registry."""

_OF_CONFLUENT = frozenset({"avro-confluent", "avro-registry", "json-registry", "proto-registry"})
_OF_GLUE = frozenset({"avro-glue", "json-glue", "protobuf-glue"})

_NOT_JSON = frozenset({"csv", "avro", "protobuf", "raw"})

_PREFIX_BYTES = 5
_NUMBERS = {4: "INT", 8: "BIGINT"}

_GLUE_BEGINS, _GLUE_BYTES = (b"\x03\x00", b"\x03\x05"), 18
"""How messages of AWS Glue begin, and how long what stands before their payload is."""

_MOST = 2_000
"""So many characters has a reason."""


@dataclass(frozen=True)
class BadMessage:
    """A message that cannot be decoded: its index in the batch, what failed and why.

    The reason shows parts of the message: here it is made fit for errors, logs, the error column and dead letters.
    """

    index: int
    stage: Stage
    reason: str

    def __post_init__(self) -> None:
        # A reason is a part of a sentence; that of a schema is a sentence of its own.
        reason = self.reason if self.reason.endswith("..") else self.reason.removesuffix(".")
        object.__setattr__(self, "reason", outside_text(reason, _MOST))


def first_bad(
    found: Iterable[BadMessage],
    skipped: Collection[int],
    batch: RawBatch,
    formats: Mapping[Stage, str],
) -> list[BadMessage]:
    """The first entry of each bad message, in offset order, with what its bytes look like behind the reason.

    Args:
        found: What is wrong with messages of a batch.
        skipped: Messages that a format skips.
        batch: The messages.
        formats: The names of the formats of key and value.
    """
    bad = first_per_message(found, skipped)
    sides = {"key": batch.keys, "value": batch.values}
    return [
        with_format_hint(each, sides[each.stage][each.index], formats[each.stage])
        if each.stage in formats
        else each
        for each in bad
    ]


def first_per_message(bad: Iterable[BadMessage], skipped: Collection[int]) -> list[BadMessage]:
    """The first entry of each message, in offset order.

    A message that a format skips for one of its sides is no error, whatever is wrong with the other side.
    """
    first: dict[int, BadMessage] = {}
    for message in bad:
        if message.index not in skipped:
            first.setdefault(message.index, message)
    return [first[index] for index in sorted(first)]


def with_format_hint(bad: BadMessage, data: bytes | None, format_: str) -> BadMessage:
    """A bad message, with what its bytes look like behind the reason.

    Args:
        bad: The message.
        data: The bytes of its key or value, whichever cannot be decoded.
        format_: The format as which they were read.
    """
    data = data or b""
    hint = (_key_hint(data, format_) if bad.stage == "key" else "") or format_hint(data, format_)
    return BadMessage(bad.index, bad.stage, f"{bad.reason}{hint}") if hint else bad


def format_hint(data: bytes, format_: str) -> str:
    """What the bytes look like, as the end of a reason; empty when nothing tells.

    >>> format_hint(b'{"id":1}', "avro")
    "; it begins with '{', as JSON does"
    >>> format_hint(b'{"id":1}', "json")
    ''
    """
    if format_ in _WITHOUT_PREFIX | _OF_GLUE and data[:1] == b"\0" and len(data) > _PREFIX_BYTES:
        schema_id = int.from_bytes(data[1:_PREFIX_BYTES], "big")
        return (
            f"; it begins as with a schema registry, with a zero byte and perhaps the schema id {schema_id}: the formats "
            "'avro-confluent', 'json-registry' and 'proto-registry' read that"
        )
    if (
        format_ in _WITHOUT_PREFIX | _OF_CONFLUENT
        and data[:2] in _GLUE_BEGINS
        and len(data) >= _GLUE_BYTES
    ):
        version = UUID(bytes=data[2:_GLUE_BYTES])
        return (
            f"; it begins as with a registry of AWS Glue, with perhaps the id of a schema version {version}: the formats 'avro-glue', "
            "'json-glue' and 'protobuf-glue' read that"
        )
    begin = data.lstrip()[:1]
    if format_ in _NOT_JSON and begin in (b"{", b"["):
        return f"; it begins with '{begin.decode()}', as JSON does"
    return ""


def _key_hint(data: bytes, format_: str) -> str:
    """What the bytes of a key look like that no other message part has: a value of its own, as Kafka's plain serializers write it."""
    number = _NUMBERS.get(len(data))
    # No registry has the schema id 0.
    if format_ in _WITHOUT_PREFIX and number and not any(data[:-3]):
        return f"; it may be a number as Kafka's serializers write it: 'key.format' = 'raw' reads that, as {number}"
    what = {"raw": "text", "json": "plain value"}.get(format_)
    if what is None or data.lstrip()[:1] in (b"{", b"[", b"") or not _is_text(data):
        return ""
    return f"; it may be a {what}: 'key.format' = 'raw' reads that as STRING, and 'csv' as a number too"


def _is_text(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False


ErrorHandler = Callable[[RawBatch, Sequence[BadMessage]], None]
"""Called with each batch that has bad messages."""

_USE = "'error-handling.mode' = 'log'"

DETAILS = frozenset({Detail.TIMESTAMP, Detail.HEADERS})
"""What a dead letter needs of a message beside its key, value and offset."""

PREFIX = "__error."
"""What the names of the added headers begin with."""

ADDED = ("topic", "partition", "offset", "timestamp", "stage", "message")
"""The headers that a dead letter has after those of the message, in this order."""


def error_handler(options: ReadOptions) -> ErrorHandler:
    """The handler for the error mode of the options."""
    match options.error_mode:
        case "fail":
            return _fail
        case "ignore":
            return _warn
        case "log":
            return DeadLetters(options).send
        case "column":
            return _keep


def _fail(batch: RawBatch, bad: Sequence[BadMessage]) -> None:
    first = bad[0]
    raise DecodeError(
        batch.topic, batch.partition, batch.offsets[first.index], first.stage, first.reason
    )


def _warn(batch: RawBatch, bad: Sequence[BadMessage]) -> None:
    first = bad[0]
    logger.warning(
        "Skipped %d messages that cannot be decoded in topic %r, partition %d, offsets %d to %d; "
        "the first at offset %d (%s): %s",
        len(bad), batch.topic, batch.partition, batch.offsets[0], batch.offsets[-1],
        batch.offsets[first.index], first.stage, first.reason,
    )  # fmt: skip


def _keep(batch: RawBatch, bad: Sequence[BadMessage]) -> None:
    """Nothing to do: the error column shows them."""


def check_dead_letter_topic(cluster: Cluster, options: ReadOptions) -> None:
    """Refuses a dead-letter topic that is missing, or a client that cannot send to it, before anything is read.

    Raises:
        OptionError: The client only reads.
        BrokerError: No broker answers, or there is no such topic.
    """
    if options.dead_letter_topic is not None:
        load_sending_client(options.table.client, _USE)
        cluster.topics(Topics(names=(options.dead_letter_topic,)))


class DeadLetters:
    """Sends bad messages to the dead-letter topic.

    At least once: a task that runs again sends them again.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def send(self, batch: RawBatch, bad: Sequence[BadMessage]) -> None:
        """Sends the bad messages of a batch and returns when the broker has confirmed them.

        Raises:
            BrokerError: There is no such topic.
            DeliveryError: The broker refused one of them.
        """
        table, topic = self._options.table, str(self._options.dead_letter_topic)
        opened = load_sending_client(table.client, _USE).sender(
            table.properties, (topic,), DeliveryGuarantee.AT_LEAST_ONCE
        )
        with closing(opened) as sender:
            sender.send(_letters(topic, batch, bad))
            sender.flush()


def _letters(topic: str, batch: RawBatch, bad: Sequence[BadMessage]) -> Messages:
    places = [message.index for message in bad]
    return Messages(
        topic,
        batch.keys.take(places).column,
        batch.values.take(places).column,
        headers=_headers(batch, bad),
    )


def _headers(batch: RawBatch, bad: Sequence[BadMessage]) -> list[Headers]:
    """The headers of each dead letter: those of the message, and those of `ADDED`."""
    topic, partition, offset, timestamp, stage, message = (PREFIX + name for name in ADDED)
    place = (topic, batch.topic.encode()), (partition, b"%d" % batch.partition)
    stages = {each: (stage, each.encode()) for each in {found.stage for found in bad}}
    return [
        [
            *batch.headers[found.index],
            *place,
            (offset, b"%d" % batch.offsets[found.index]),
            (timestamp, b"%d" % batch.timestamps[found.index]),
            stages[found.stage],
            (message, _reason(batch, found).encode()),
        ]
        for found in bad
    ]


def _reason(batch: RawBatch, message: BadMessage) -> str:
    """Why it cannot be decoded, and that the dead letter lacks headers that cannot be read."""
    why = batch.bad_headers.get(message.index)
    if why is None:
        return message.reason
    reasons = [message.reason] if message.stage == "headers" else [message.reason, why]
    return f"{'; '.join(reasons)}. The dead letter is without them"

"""Sends messages with kafka-python: producers kept from task to task, murmur2, every delivery confirmed."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka import KafkaProducer
from kafka import errors as kafka_errors

from pyspark_upsert_kafka.core.closing import undone_on_failure
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee, required_acks
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    DeliveryError,
    RetriableDeliveryError,
)
from pyspark_upsert_kafka.core.metadata import Headers
from pyspark_upsert_kafka.core.options.properties import PREFIX, Properties
from pyspark_upsert_kafka.core.positions.cluster_view import TopicInfo
from pyspark_upsert_kafka.kafka.client_pool import Lease, PartitionLookups, Pool
from pyspark_upsert_kafka.kafka.cluster import max_message_bytes
from pyspark_upsert_kafka.kafka.failures import (
    ClientErrors,
)
from pyspark_upsert_kafka.kafka.kafka_python.cluster import pooled_cluster
from pyspark_upsert_kafka.kafka.kafka_python.errors import (
    connect_timeouts,
    describe_error,
    errors_of,
    retrying,
)
from pyspark_upsert_kafka.kafka.kafka_python.installed import (
    IS_KAFKA_PYTHON_3,
    needs_kafka_python_3,
)
from pyspark_upsert_kafka.kafka.kafka_python.properties import (
    CONNECTION_REQUEST_MS,
    QUEUED_MESSAGES,
    client_config,
    create_no_topics,
    open_client,
)
from pyspark_upsert_kafka.kafka.outgoing_messages import (
    TOO_LARGE_HINT,
    Messages,
    Row,
    Undelivered,
    larger_than_queue,
    partition_of,
    raise_if_fatal,
)
from pyspark_upsert_kafka.kafka.retrying import CLOSE_TIMEOUT_S, Timeouts

DELIVERY_CHECK_S = 1.0
"""After so long without a delivery report it is checked whether the client has a fatal error."""


_CONFIG = {
    "linger_ms": 5,
    "delivery_timeout_ms": 120_000,  # the Java client's default
    "max_block_ms": 45_000,
    "reconnect_backoff_max_ms": 1_000,
    QUEUED_MESSAGES: 20_000,
}

_BATCH_BYTES = 128 * 1024
_REQUEST_BYTES = 1024 * 1024
_REQUEST_MS = 30_000
_QUEUE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class OpenProducer:
    """A producer, what it writes to, and how much of what it is given may be unrequired.

    Args:
        producer: The producer.
        topics: The topics with their partitions as they were when it was opened.
        lookups: When the topics were last looked up.
        max_messages: The most messages.
        max_bytes: The most bytes of keys and values.
        delivery_s: After so long a message counts as undelivered: kafka-python-ng tries again for ever while brokers take its requests.
    """

    producer: KafkaProducer
    topics: Mapping[str, TopicInfo]
    lookups: PartitionLookups
    max_messages: int
    max_bytes: int
    delivery_s: float


def pooled_producer(
    properties: Properties, topics: tuple[str, ...], guarantee: DeliveryGuarantee
) -> Lease[OpenProducer]:
    """A producer for these topics, which are checked to exist when it is opened.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        OptionError: The client does not take a property, or cannot give the guarantee.
    """

    def look_up() -> dict[str, TopicInfo]:
        with pooled_cluster(properties, "writer") as cluster:
            return cluster.existing(topics)

    def connect() -> OpenProducer:
        config = producer_config(properties, guarantee)
        with pooled_cluster(properties, "writer") as cluster:
            limits = max_message_bytes(cluster, topics)
        times = Timeouts.from_properties(properties.resolved())
        return _opened(with_sizes(config, limits), times, look_up())

    settings = (properties.resolved(), topics, guarantee)
    lease = POOL.take(settings, connect)
    while lease.client.lookups.is_due:
        lease.client.lookups.note()
        # There is no other way to have the client ask, and to know when it has the answer.
        with undone_on_failure(partial(POOL.discard, lease)):
            has_changed = look_up() != lease.client.topics
        if has_changed:
            POOL.discard(lease)
            lease = POOL.take(settings, connect)
    return lease


def _opened(
    config: Mapping[str, Any], times: Timeouts, topics: Mapping[str, TopicInfo]
) -> OpenProducer:
    def connect(timeout: float) -> KafkaProducer:
        return open_client(KafkaProducer, {**config, **connect_timeouts(timeout)})

    servers, errors = str(config["bootstrap_servers"]), config["client_id"].errors
    producer = retrying(servers, times, errors).call("connect", connect)
    create_no_topics(producer._metadata)  # noqa: SLF001
    lookups = PartitionLookups(len(topics))
    delivery_s = math.inf if IS_KAFKA_PYTHON_3 else config["delivery_timeout_ms"] / 1000
    return OpenProducer(
        producer, topics, lookups, config[QUEUED_MESSAGES], config["buffer_memory"], delivery_s
    )


def end_thread(producer: KafkaProducer) -> None:
    """Has the producer's thread end, and fail what is unsent, which ``close()`` would wait for."""
    producer._sender.force_close()  # noqa: SLF001


def _close(opened: OpenProducer) -> None:
    producer = opened.producer
    end_thread(producer)
    producer._sender.join(CLOSE_TIMEOUT_S)  # noqa: SLF001
    producer.close(timeout=0)


POOL: Pool[OpenProducer] = Pool(_close)


def producer_config(properties: Properties, guarantee: DeliveryGuarantee) -> dict[str, Any]:
    """The producer's arguments.

    Raises:
        OptionError: The properties contradict the guarantee, or the library cannot give it.
    """
    given = client_config(properties, "writer", _CONFIG)
    required = required_acks(properties.resolved(), guarantee)
    given["acks"] = required.acks if required.acks == "all" else int(required.acks)
    given["enable_idempotence"] = required.idempotent
    if required.idempotent and not IS_KAFKA_PYTHON_3:
        raise needs_kafka_python_3(
            "cannot write idempotently, so that a lost answer may write a message twice",
            f"accept that with '{PREFIX}enable.idempotence' = 'false'",
        )
    if not required.idempotent:
        # Without idempotence a second request in flight could overtake the first one's retry.
        given.setdefault("max_in_flight_requests_per_connection", 1)
    delivery_ms = given["delivery_timeout_ms"]
    if IS_KAFKA_PYTHON_3:
        # As in the Java client, the time for one request and for lingering must be less than for all.
        request_ms = min(_REQUEST_MS, delivery_ms - given["linger_ms"] - 1)
        given.setdefault("request_timeout_ms", max(1, request_ms))
    else:
        # Its producer has one timeout for all: of a request, and of a message that waits to be tried again.
        request_ms = given.get("request_timeout_ms", _REQUEST_MS)
        given[CONNECTION_REQUEST_MS] = min(request_ms, delivery_ms)
        given["request_timeout_ms"] = delivery_ms
        given.setdefault("retries", 2**31 - 1)
    return given


def with_sizes(config: Mapping[str, Any], limits: Sequence[int]) -> dict[str, Any]:
    """The arguments with sizes that suit the topics, where the user says nothing else.

    A batch too large for a topic would have messages that are small enough refused with a large one.

    Args:
        config: The producer's arguments.
        limits: The largest message that each topic takes, where that is known.
    """
    largest = config.get("max_request_size", max([_REQUEST_BYTES, *limits]))
    queue = config.get("buffer_memory", max(_QUEUE_BYTES, largest))
    return {
        # The library's memory is in pieces of a batch: with none it would wait for ever.
        "batch_size": max(1, min([_BATCH_BYTES, *limits, queue])),
        "max_request_size": largest,
        "buffer_memory": queue,
        **config,
    }


class KafkaPythonSender:
    """One producer; used by one task at a time.

    Args:
        lease: The producer, with nothing unsent.
    """

    def __init__(self, lease: Lease[OpenProducer]) -> None:
        self._lease = lease
        self._producer, self._max_bytes = lease.client.producer, lease.client.max_bytes
        self._errors = errors_of(self._producer)
        self._errors.clear()
        self._unconfirmed = UnconfirmedMessages(lease.client.max_messages, self._max_bytes)
        self._undelivered = Undelivered()
        self._is_cancelled = False

    def send(self, messages: Messages) -> None:
        """Hands messages to the client, waiting while too many are unconfirmed."""
        for message in messages.rows():
            while self._unconfirmed.is_full:
                self._wait_for_oldest()
            self._hand_over(message, messages.partition)
        while self._unconfirmed and self._unconfirmed.oldest.future.is_done:
            self._wait_for_oldest()
        self._undelivered.raise_first()

    def flush(self) -> None:
        """Returns when the broker has confirmed every message sent so far."""
        while self._unconfirmed:
            self._wait_for_oldest()
        self._undelivered.raise_first()

    def cancel(self) -> None:
        """Ends, from another thread, what waits in `send` or `flush`; after it there is only `close`.

        The client looks up a topic's partitions without a way to end that, for `max_block_ms` at most.
        """
        self._is_cancelled = True
        end_thread(self._producer)

    def close(self) -> None:
        """Gives the producer back for the next task, or ends it and drops what is unsent."""
        if self._unconfirmed or self._undelivered or self._is_cancelled:
            POOL.discard(self._lease)
        else:
            POOL.give_back(self._lease)

    def _hand_over(self, message: Row, partition: int | None) -> None:
        if self._is_cancelled:
            raise BrokerError("Nothing more is written: the task has ended.")
        topic, key, value, timestamp, headers = message
        size = len(key or b"") + len(value or b"")
        try:
            if partition is None:
                partition = self._partition(topic, key)
            self._check_sendable(key, value, headers)
            future = self._producer.send(
                topic, value, key, list(headers or ()), partition, timestamp or None
            )
        except (kafka_errors.KafkaError, _UnsendableError) as error:
            self._add_undelivered(topic, partition, key, error)
            self._undelivered.raise_first()
        self._unconfirmed.add(UnconfirmedMessage(future, topic, partition, key, size))

    def _partition(self, topic: str, key: bytes | None) -> int | None:
        """Where the Java client puts the key; None = anywhere."""
        if key is None:
            return None
        return partition_of(key, len(self._producer.partitions_for(topic)))

    def _check_sendable(
        self, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> None:
        if key is None and value is None:
            raise _UnsendableError(
                "kafka-python sends no message that has neither key nor value; set 'kafka.client' to "
                "'librdkafka'"
            )
        for name, content in headers or ():
            if content is None:
                raise _UnsendableError(
                    f"kafka-python sends no header without a value, and {name!r} has none; set "
                    "'kafka.client' to 'librdkafka'"
                )
        size = len(key or b"") + len(value or b"")
        if size > self._max_bytes:
            raise _UnsendableError(larger_than_queue(size))

    def _wait_for_oldest(self) -> None:
        """Waits for the report of the oldest message; after the first failure nothing is waited for."""
        oldest, done = self._unconfirmed.oldest, 0
        while not oldest.future.is_done:
            self._undelivered.raise_first()
            self._raise_if_late(oldest)
            try:
                oldest.future.get(DELIVERY_CHECK_S)
            except kafka_errors.KafkaError:
                before, done = done, self._unconfirmed.count_done()
                if done > before:
                    self._errors.note_progress()
                raise_if_fatal(self._errors)
        self._unconfirmed.remove_oldest()
        if oldest.future.exception is None:
            self._errors.note_progress()
        else:
            self._add_undelivered(
                oldest.topic, oldest.partition, oldest.key, oldest.future.exception
            )

    def _raise_if_late(self, message: UnconfirmedMessage) -> None:
        """Raises a DeliveryError for a message that has been unconfirmed for too long."""
        limit_s = self._lease.client.delivery_s
        if time.monotonic() - message.handed_over_at <= limit_s:
            return
        error = kafka_errors.KafkaTimeoutError(f"{limit_s:g} seconds have passed")
        self._add_undelivered(message.topic, message.partition, message.key, error)
        self._undelivered.raise_first()

    def _add_undelivered(
        self, topic: str, partition: int | None, key: bytes | None, error: Exception
    ) -> None:
        reason = _reason(error, self._errors)
        # kafka-python 3 says of each message what was wrong with it, and of its neighbours so.
        refused_with_batch = type(error) is kafka_errors.KafkaError and "part of a batch" in str(
            error
        )
        code = getattr(error, "errno", None)
        late = isinstance(error, kafka_errors.KafkaTimeoutError)
        failed = (RetriableDeliveryError if late else DeliveryError)(topic, partition, key, reason)
        self._undelivered.add(failed, code, refused_with_batch=refused_with_batch)


class _UnsendableError(Exception):
    """The client cannot send such a message."""


def _reason(error: Exception, errors: ClientErrors) -> str:
    if isinstance(error, _UnsendableError):
        return str(error)
    if isinstance(error, kafka_errors.MessageSizeTooLargeError):
        return f"the message is too large {TOO_LARGE_HINT}"
    text, seen = errors.shown(describe_error(error)), errors.describe()
    if isinstance(error, kafka_errors.KafkaTimeoutError):
        text = f"no broker confirmed it in time ({text})"
    return f"{text}.{seen}" if seen else text


class UnconfirmedMessage:
    """A message that was handed to the producer."""

    __slots__ = ("future", "handed_over_at", "key", "partition", "size", "topic")

    def __init__(
        self, future: Any, topic: str, partition: int | None, key: bytes | None, size: int
    ) -> None:
        self.handed_over_at = time.monotonic()
        self.future, self.topic, self.partition = future, topic, partition
        self.key, self.size = key, size


class UnconfirmedMessages:
    """The messages in the order in which they were handed over, bounded in number and in bytes.

    Args:
        max_messages: The number of messages with which it is full.
        max_bytes: The bytes of keys and values with which it is full.
    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._max_messages, self._max_bytes = max_messages, max_bytes
        self._messages: deque[UnconfirmedMessage] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def is_full(self) -> bool:
        """Whether one must be confirmed before the next is handed over."""
        return len(self._messages) >= self._max_messages or self._bytes >= self._max_bytes

    @property
    def oldest(self) -> UnconfirmedMessage:
        """The one handed over first; there must be one."""
        return self._messages[0]

    def add(self, message: UnconfirmedMessage) -> None:
        """Takes a message that was handed over."""
        self._messages.append(message)
        self._bytes += message.size

    def remove_oldest(self) -> None:
        """Lets go of the one handed over first."""
        self._bytes -= self._messages.popleft().size

    def count_done(self) -> int:
        """How many have got an answer."""
        return sum(each.future.is_done for each in self._messages)

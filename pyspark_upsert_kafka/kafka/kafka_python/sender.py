"""Sends messages with kafka-python: murmur2, every delivery confirmed."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaProducer
from kafka import errors as kafka_errors
from kafka.partitioner.default import murmur2

from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError
from pyspark_upsert_kafka.core.options import Topics
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka import timeouts
from pyspark_upsert_kafka.kafka.client_errors import SECURITY_HINT
from pyspark_upsert_kafka.kafka.cluster import KafkaCluster
from pyspark_upsert_kafka.kafka.kafka_python.admin_pool import pooled_admin
from pyspark_upsert_kafka.kafka.kafka_python.client_log import errors_of
from pyspark_upsert_kafka.kafka.kafka_python.errors import (
    connect_timeouts,
    describe_error,
    retrying,
)
from pyspark_upsert_kafka.kafka.kafka_python.producer_config import producer_config, with_sizes
from pyspark_upsert_kafka.kafka.kafka_python.properties import create_no_topics, open_client
from pyspark_upsert_kafka.kafka.kafka_python.translations import QUEUED_MESSAGES
from pyspark_upsert_kafka.kafka.messages import Headers, Messages
from pyspark_upsert_kafka.kafka.pool import Lease, Pool
from pyspark_upsert_kafka.kafka.sizes import larger_than_queue, max_message_bytes
from pyspark_upsert_kafka.kafka.timeouts import Timeouts
from pyspark_upsert_kafka.kafka.undelivered import Undelivered


def sender_for(
    properties: Properties, topics: tuple[str, ...], guarantee: DeliveryGuarantee
) -> KafkaPythonSender:
    """A sender to these topics, which are checked to exist before the first message.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        OptionError: The client does not take a property, or cannot give the guarantee.
    """

    def connect() -> _Connection:
        config = producer_config(properties, guarantee)
        with pooled_admin(properties, "writer") as admin:
            KafkaCluster(admin).topics(Topics(names=topics))
            limits = max_message_bytes(admin, topics)
        return _connected(
            with_sizes(config, limits), Timeouts.from_properties(properties.resolved())
        )

    return KafkaPythonSender(POOL.take((properties.resolved(), topics, guarantee), connect))


class KafkaPythonSender:
    """One producer; used by one task at a time.

    Args:
        lease: The producer, with nothing unsent.
    """

    def __init__(self, lease: Lease[_Connection]) -> None:
        self._lease = lease
        self._producer = lease.client.producer
        self._most, self._most_bytes = lease.client.most, lease.client.most_bytes
        self._errors = errors_of(self._producer)
        self._errors.clear()
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._undelivered = Undelivered()

    def send(self, messages: Messages) -> None:
        """Hands messages to the client, waiting while too many are unconfirmed."""
        for topic, key, value, timestamp, headers in messages.rows():
            while len(self._waiting) >= self._most or self._waiting_bytes >= self._most_bytes:
                self._wait_for_one()
            self._hand_over(topic, key, value, timestamp, headers)
        while self._waiting and self._waiting[0].future.is_done:
            self._wait_for_one()
        self._undelivered.raise_first()

    def flush(self) -> None:
        """Returns when the broker has confirmed every message sent so far."""
        while self._waiting:
            self._wait_for_one()
        self._undelivered.raise_first()

    def close(self) -> None:
        """Gives the producer back for the next task, or ends it when anything is unsent."""
        if self._waiting or self._undelivered:
            POOL.discard(self._lease)
        else:
            POOL.give_back(self._lease)

    def _hand_over(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers | None,
    ) -> None:
        partition = None
        try:
            if key is not None:
                count = len(self._producer.partitions_for(topic))
                partition = (murmur2(key) & 0x7FFFFFFF) % count
            _refuse_what_the_client_cannot(key, value, headers)
            size = len(key or b"") + len(value or b"")
            if size > self._most_bytes:
                raise _UnsendableError(larger_than_queue(size))  # noqa: TRY301
            future = self._producer.send(
                topic, value, key, list(headers or ()), partition, timestamp or None
            )
        except (kafka_errors.KafkaError, _UnsendableError) as error:
            self._fail(topic, partition, key, error)
            self._undelivered.raise_first()
        self._waiting.append(_Waiting(future, topic, partition, key, size))
        self._waiting_bytes += size

    def _wait_for_one(self) -> None:
        """Waits for the report of the oldest message; after the first failure nothing is waited for."""
        waiting, done = self._waiting[0], 0
        while not waiting.future.is_done:
            self._undelivered.raise_first()
            try:
                waiting.future.get(timeouts.DELIVERY_CHECK_S)
            except kafka_errors.KafkaError:
                before, done = done, sum(each.future.is_done for each in self._waiting)
                if done > before:
                    self._errors.note_progress()
                if self._errors.fatal_error is not None:
                    raise BrokerError(
                        f"Nothing can be written: {self._errors.fatal_error}.{SECURITY_HINT}"
                    ) from None
        self._waiting.popleft()
        self._waiting_bytes -= waiting.size
        if waiting.future.exception is None:
            self._errors.note_progress()
        else:
            self._fail(waiting.topic, waiting.partition, waiting.key, waiting.future.exception)

    def _fail(self, topic: str, partition: int | None, key: bytes | None, error: Exception) -> None:
        reason = _reason(error, self._errors.describe())
        # kafka-python 3 tells of each message what was wrong with it, and of its neighbours so.
        innocent = type(error) is kafka_errors.KafkaError and "part of a batch" in str(error)
        code = getattr(error, "errno", None)
        failed = DeliveryError(topic, partition, key, reason)
        self._undelivered.add(failed, code, innocent=innocent)


@dataclass(frozen=True)
class _Connection:
    """A producer, and how much may wait to be confirmed."""

    producer: KafkaProducer
    most: int
    most_bytes: int


def _connected(config: Mapping[str, Any], times: Timeouts) -> _Connection:
    def connect(timeout: float) -> KafkaProducer:
        return open_client(KafkaProducer, {**config, **connect_timeouts(timeout)})

    servers, errors = str(config["bootstrap_servers"]), config["client_id"].errors
    producer = retrying(servers, times, errors).call("connect", connect)
    create_no_topics(producer._metadata)  # noqa: SLF001
    return _Connection(producer, config[QUEUED_MESSAGES], config["buffer_memory"])


def _end(connection: _Connection) -> None:
    producer = connection.producer
    producer._sender.force_close()  # noqa: SLF001 - close() would wait for what is unsent
    producer._sender.join(timeouts.CLOSE_TIMEOUT_S)  # noqa: SLF001
    producer.close(timeout=0)


POOL: Pool[_Connection] = Pool(_end)


class _Waiting:
    """A message that is not yet confirmed."""

    __slots__ = ("future", "key", "partition", "size", "topic")

    def __init__(
        self, future: Any, topic: str, partition: int | None, key: bytes | None, size: int
    ) -> None:
        self.future, self.topic, self.partition = future, topic, partition
        self.key, self.size = key, size


class _UnsendableError(Exception):
    """The client cannot send such a message."""


def _refuse_what_the_client_cannot(
    key: bytes | None, value: bytes | None, headers: Headers | None
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


def _reason(error: Exception, trouble: str) -> str:
    if isinstance(error, _UnsendableError):
        return str(error)
    if isinstance(error, kafka_errors.MessageSizeTooLargeError):
        return (
            "the message is too large (see the topic's 'max.message.bytes' and "
            "'properties.max.request.size')"
        )
    return f"{describe_error(error)}.{trouble}" if trouble else describe_error(error)

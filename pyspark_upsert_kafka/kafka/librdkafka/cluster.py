"""A cluster by librdkafka's admin client, with retries, each by a client that has looked up the leaders anew."""

from __future__ import annotations

import ctypes
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar

import confluent_kafka as ck
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.cluster_view import TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.client_pool import Pool
from pyspark_upsert_kafka.kafka.cluster import (
    EARLIEST,
    LATEST,
    BackgroundCommits,
    Cluster,
    OffsetLookup,
    answered_offset,
    answered_topic,
    lent,
)
from pyspark_upsert_kafka.kafka.failures import AttemptError, Failure, FailureKind
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors, classify
from pyspark_upsert_kafka.kafka.librdkafka.group_consumer import GroupConsumer
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, open_client
from pyspark_upsert_kafka.kafka.port_protocol import protocol_hint
from pyspark_upsert_kafka.kafka.retrying import Outage, Retrying, Timeouts

T = TypeVar("T")

_POLL_S = 0.2
"""How often errors are looked for while an answer is awaited."""

_LEADER_S = 5.0
"""How long the first attempt waits while a broker is out of reach, before the leader is looked up anew: it may have moved."""

_METADATA_S = 5.0
"""For the metadata of all topics."""

_REPLACED = 4
"""The number of replaced clients that are kept, so that their requests can end."""


class RetryingAdminClient:
    """An admin client, replaced by a new one as the last resort.

    Args:
        config: librdkafka's configuration.
        timeouts: For one attempt and for all of them.

    Raises:
        OptionError: The client does not take a property.
    """

    def __init__(self, config: Mapping[str, Any], timeouts: Timeouts) -> None:
        self.servers, self.timeouts = str(config["bootstrap.servers"]), timeouts
        self.outage = Outage()
        self._errors = ReportedErrors(config)
        # The client must not hold what holds it: its threads end with its last reference.
        self.config = {**config, "error_cb": self._errors.on_error}
        self._leader_s = _LEADER_S
        self._attempt_began = time.monotonic()
        # A client that ends with a request under way may abort the process (librdkafka issue 4605).
        self._replaced: deque[AdminClient] = deque(maxlen=_REPLACED)
        self.client = open_client(AdminClient, self.config)

    def call(self, what: str, request: Callable[[float], T]) -> T:
        """The answer to a request, retried as `Retrying` says."""

        def attempt(timeout: float) -> T:
            self._errors.unreachable = None
            self._attempt_began = time.monotonic()
            with self._refusals_told():
                return request(timeout)

        self.client.poll(0)  # errors of before are passed on now, and cleared
        self._leader_s = _LEADER_S
        # Not kept: it refers to this object, and a cycle would keep the client's threads alive.
        return Retrying(
            self.servers, self.timeouts, self._errors, (KafkaException,), classify,
            self._refresh, self._reopen, self._hint, self.outage,
        ).call(what, attempt)  # fmt: skip

    def close(self) -> None:
        """Ends the client, even while an exception that was raised here, and so this object, is kept."""
        self._replaced.clear()
        del self.client

    def all_topics(self, timeout: float) -> list[str]:
        """Names of all topics; the client knows their leaders anew."""
        # Errors are not passed on meanwhile, so it does not last as long as an attempt may.
        return list(self.client.list_topics(timeout=min(timeout, _METADATA_S)).topics)

    def result(self, future: Future[Any], timeout: float = math.inf) -> Any:
        """What a future gives, unless an error shows meanwhile that no answer will come.

        Args:
            future: One of the client's, which ends by itself in time unless a timeout is given.
            timeout: How long it is waited for, in seconds.

        Raises:
            KafkaException: The future's own, that brokers are out of reach, or that there is no answer in time.
            AttemptError: Security errors are fatal.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                return future.result(_POLL_S)
            except NotYetError:
                self.client.poll(0)
                self._raise_if_lost()
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - confluent-kafka's spelling

    def _raise_if_lost(self) -> None:
        """Raises for a fatal error, and for brokers that are out of reach for long."""
        fatal, unreachable = self._errors.fatal_error, self._errors.unreachable
        if fatal is not None:
            raise AttemptError(Failure(FailureKind.SECURITY, fatal))
        if self._errors.lost_login is not None:
            raise AttemptError(Failure(FailureKind.SECURITY, self._errors.security_error))
        if unreachable is None:
            return
        if unreachable.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            raise KafkaException(unreachable)
        if time.monotonic() - self._attempt_began > self._leader_s:
            self._leader_s *= 2  # it may also be another broker that is away, and the answer slow
            raise KafkaException(unreachable)

    def _refresh(self, timeout: float) -> bool:
        with self._refusals_told():
            self.all_topics(timeout)
        return True

    @contextmanager
    def _refusals_told(self) -> Iterator[None]:
        """Raises the refused login or certificate, where a request knows only that its connection was lost.

        The client reports the cause once, and not again within half a minute.
        """
        refusals = self._errors.refusals
        try:
            yield
        except KafkaException as error:
            self.client.poll(0)
            if self._errors.refusals > refusals and classify(error).kind.is_retriable:
                text = self._errors.security_error
                raise AttemptError(Failure(FailureKind.SECURITY, text)) from error
            raise
        finally:
            self.client.poll(0)  # librdkafka passes on its log and its errors only when polled

    def _hint(self) -> str:
        return protocol_hint(self.servers, str(self.config.get("security.protocol", "")))

    def _reopen(self) -> None:
        self._replaced.append(self.client)
        self.client = open_client(AdminClient, self.config)


_NEVER_S = 3600.0
"""A timeout that no request reaches; the longest that librdkafka takes."""


class GroupOffsets:
    """The committed offsets of a consumer group.

    Args:
        admin: Sends the requests that are not about offsets, and retries.
        group: The group's name.
    """

    def __init__(self, admin: RetryingAdminClient, group: str) -> None:
        self._admin, self._group = admin, group
        self._committing: GroupConsumer | None = None
        self._commits = BackgroundCommits(group, self._commit, (ck.KafkaException,))

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The committed offset of each partition; a negative one stands for none."""
        wanted = [ck.TopicPartition(tp.topic, tp.partition) for tp in partitions]
        with closing(GroupConsumer(self._admin.config, self._group)) as consumer:

            def request(timeout: float) -> dict[TopicPartition, int]:
                found = consumer.committed(wanted, timeout)
                return {TopicPartition(tp.topic, tp.partition): tp.offset for tp in found}

            return self._admin.call(f"look up the offsets of group {self._group!r}", request)

    def operations(self) -> frozenset[str] | None:
        """What the user may do with the group, as names of ACL operations; None = brokers do not tell, as of a new group."""

        def request(timeout: float) -> frozenset[str] | None:
            # The client waits on: it would abort the process if it gave up.
            futures = self._admin.client.describe_consumer_groups(
                [self._group], include_authorized_operations=True, request_timeout=_NEVER_S
            )
            try:
                found = self._admin.result(futures[self._group], timeout).authorized_operations
            except ck.KafkaException as error:
                code = error.args[0].code()
                if code == ck.KafkaError.GROUP_AUTHORIZATION_FAILED:
                    return frozenset()
                if code == ck.KafkaError.GROUP_ID_NOT_FOUND:
                    return None
                raise
            return None if found is None else frozenset(each.name for each in found)

        return self._admin.call(f"look up what is allowed with group {self._group!r}", request)

    def commit(self, positions: Positions) -> None:
        """Commits positions without waiting; a warning is logged of the first failure."""
        self._commits.add(positions)

    def close(self) -> None:
        """Waits a little for a commit that is under way."""
        if self._commits.wait() and self._committing is not None:
            self._committing.close()

    def _commit(self, positions: Positions) -> None:
        if self._committing is None:
            self._committing = GroupConsumer(self._admin.config, self._group)
        offsets = [ck.TopicPartition(tp.topic, tp.partition, at) for tp, at in positions.items()]
        self._committing.commit(offsets, self._admin.timeouts.api_s)


_LEVELS = {True: ck.IsolationLevel.READ_COMMITTED, False: ck.IsolationLevel.READ_UNCOMMITTED}
"""By whether only what is committed counts."""

_AUTO_CREATE = "allow.auto.create.topics"


class LibrdkafkaCluster(Cluster):
    """Sends the requests through one admin client.

    Args:
        properties: The client's properties.
        role: Part of the client id.
    """

    who_tells_operations = ""

    def __init__(self, properties: Properties, role: str) -> None:
        config = client_config(properties, role, {})
        self.may_create = str(config.get(_AUTO_CREATE, "false")).lower() == "true"
        self.group = str(config.pop("group.id", ""))
        self._admin = RetryingAdminClient(config, Timeouts.from_properties(properties.resolved()))
        self._group_offsets = GroupOffsets(self._admin, self.group)
        self.servers, self.timeouts = self._admin.servers, self._admin.timeouts
        self.outage = self._admin.outage

    def close(self) -> None:
        """Waits for a commit that is under way, and ends the admin client."""
        self._group_offsets.close()
        self._admin.close()

    def names(self) -> Sequence[str]:
        """Names of all topics."""
        return self._admin.call("list topics", self._admin.all_topics)

    def described(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """Those of the topics that exist, by name."""

        def request(timeout: float) -> dict[str, TopicInfo]:
            futures = self._admin.client.describe_topics(
                ck.TopicCollection(list(names)), request_timeout=timeout
            )
            found = {}
            for name, future in futures.items():
                try:
                    topic = self._admin.result(future)
                except ck.KafkaException as error:
                    if error.args[0].code() != ck.KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
                else:
                    found[name] = answered_topic(name, _topic_id(topic), len(topic.partitions))
            return found

        return self._admin.call(f"look up the topics {', '.join(names)}", request)

    def brokers(self) -> list[str]:
        """The addresses of all brokers."""

        def request(timeout: float) -> list[str]:
            future = self._admin.client.describe_cluster(request_timeout=timeout)
            return [f"{node.host}:{node.port}" for node in self._admin.result(future).nodes]

        return self._admin.call("list brokers", request)

    def operations(self, topics: Sequence[str]) -> dict[str, frozenset[str]] | None:
        """What the user may do with topics, as names of ACL operations; None = brokers before Kafka 2.3 do not tell."""

        def request(timeout: float) -> dict[str, frozenset[str]] | None:
            futures = self._admin.client.describe_topics(
                ck.TopicCollection(list(topics)),
                include_authorized_operations=True,
                request_timeout=timeout,
            )
            found = {
                name: self._admin.result(future).authorized_operations
                for name, future in futures.items()
            }
            if None in found.values():
                return None
            return {name: frozenset(each.name for each in of) for name, of in found.items()}

        return self._admin.call("look up what is allowed", request)

    def group_operations(self) -> frozenset[str] | None:
        """What the user may do with the group, as names of ACL operations; None = brokers do not tell."""
        return self._group_offsets.operations()

    def create(self, names: Sequence[str]) -> None:
        """Lets the broker create missing topics, by a metadata request for each as a producer sends."""
        for name in names:

            def request(timeout: float, name: str = name) -> object:
                return self._admin.client.list_topics(name, timeout=timeout)

            self._admin.call(f"create topic {name}", request)

    def list_offsets(
        self, partitions: Sequence[TopicPartition], lookups: Sequence[OffsetLookup]
    ) -> list[dict[TopicPartition, int]]:
        """The offsets of the partitions for each lookup, all requested at once; negative = none."""
        wanted = [ck.TopicPartition(tp.topic, tp.partition) for tp in partitions]
        if not wanted:
            return [{} for _ in lookups]

        def request(timeout: float) -> list[dict[TopicPartition, int]]:
            answers = [
                self._admin.client.list_offsets(
                    dict.fromkeys(wanted, _spec(lookup)),
                    isolation_level=_LEVELS[lookup.read_committed],
                    request_timeout=timeout,
                )
                for lookup in lookups
            ]
            return [
                {
                    TopicPartition(tp.topic, tp.partition): answered_offset(
                        self._admin.result(future).offset, lookup
                    )
                    for tp, future in answer.items()
                }
                for lookup, answer in zip(lookups, answers, strict=True)
            ]

        return self._admin.call("look up offsets", request)

    def group_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the group has committed; negative = none."""
        return self._group_offsets.committed(partitions)

    def groups(self) -> list[str]:
        """Names of the consumer groups that may be seen."""

        def request(timeout: float) -> list[str]:
            future = self._admin.client.list_consumer_groups(request_timeout=timeout)
            return [group.group_id for group in self._admin.result(future).valid]

        return self._admin.call("list consumer groups", request)

    def offsets_retention_s(self) -> float:
        """For how long brokers keep the offsets of groups, in seconds; a BrokerError when the ACLs do not allow it."""

        def request(timeout: float) -> float:
            broker = next(iter(self._admin.client.list_topics(timeout=timeout).brokers))
            asked = [ConfigResource(ResourceType.BROKER, str(broker))]
            (future,) = self._admin.client.describe_configs(asked, request_timeout=timeout).values()
            return 60.0 * int(self._admin.result(future)["offsets.retention.minutes"].value)

        return self._admin.call("look up a broker's settings", request)

    def commit(self, positions: Positions) -> None:
        """Commits positions to the group, without waiting; a warning is logged of the first failure."""
        self._group_offsets.commit(positions)

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """Those of the configs that are told, by topic and name; a BrokerError when the ACLs do not allow it."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]

        def request(timeout: float) -> dict[str, dict[str, str]]:
            futures = self._admin.client.describe_configs(resources, request_timeout=timeout)
            all_of = {each.name: self._admin.result(future) for each, future in futures.items()}
            return {
                topic: {
                    name: str(found.value)
                    for name in names
                    if (found := all_.get(name)) is not None and found.value is not None
                }
                for topic, all_ in all_of.items()
            }

        return self._admin.call("look up topic settings", request)


def _spec(lookup: OffsetLookup) -> OffsetSpec:
    if lookup.timestamp_ms == EARLIEST:
        return OffsetSpec.earliest()
    if lookup.timestamp_ms == LATEST:
        return OffsetSpec.latest()
    return OffsetSpec.for_timestamp(lookup.timestamp_ms)


def _topic_id(topic: Any) -> str:
    id_ = str(topic.topic_id)
    # confluent-kafka (2.16) never releases the id of a description: one more object with each lookup.
    if _references(topic) == _references(_WITH_ID) + 1:
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(topic.topic_id))
    return "" if not id_.strip("A") else id_  # brokers before Kafka 2.8: all zero


_WITH_ID = SimpleNamespace(topic_id=ck.Uuid(0, 1))


def _references(described: Any) -> int:
    """How many references there are to the id of a description."""
    return sys.getrefcount(described.topic_id)


POOL: Pool[LibrdkafkaCluster] = Pool(LibrdkafkaCluster.close)


def pooled_cluster(
    properties: Properties, role: str, outage_s: float = 0.0
) -> AbstractContextManager[LibrdkafkaCluster]:
    """An admin connection with these properties, kept for the next task."""
    return lent(POOL, LibrdkafkaCluster, properties, role, outage_s)

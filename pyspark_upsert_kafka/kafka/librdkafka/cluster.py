"""What librdkafka's admin client knows: topics, bounds, offsets by time, groups."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from pyspark_upsert_kafka.core.errors import BrokerError, DataLossError, OptionError
from pyspark_upsert_kafka.core.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.core.options import Position, Topics
from pyspark_upsert_kafka.core.planning import Bounds, ClusterView
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.librdkafka.asking import Trouble, ask
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, invalid_property

logger = logging.getLogger("pyspark_upsert_kafka")

T = TypeVar("T")

_AUTO_CREATE = "allow.auto.create.topics"
_APPEARS_WITHIN_S = 2.0


class LibrdkafkaCluster:
    """Asks the brokers through one admin client, opened at the first question."""

    def __init__(self, properties: Properties, role: str) -> None:
        self._properties = properties
        self._servers = properties["bootstrap.servers"]
        self._trouble = Trouble()
        config = client_config(properties, role, {"error_cb": self._trouble})
        self._may_create = str(config.get(_AUTO_CREATE, "false")).lower() == "true"
        self._group = config.get("group.id")
        self._config = config
        self._group_member: ck.Consumer | None = None
        self._warned = False
        try:
            self._admin = AdminClient(_without(config, "group.id"))
        except ck.KafkaException as error:
            raise invalid_property(error) from None

    def close(self) -> None:
        """Leaves the group; the admin client's threads end with it."""
        if self._group_member is not None:
            self._group_member.close()
            self._group_member = None

    def topics(self, wanted: Topics) -> dict[str, tuple[str, int]]:
        """Name -> id and number of partitions of the wanted topics."""
        if wanted.pattern is not None:
            return self.existing(self._matching(wanted))
        found = self.existing(wanted.names)
        if len(found) < len(wanted.names) and self._may_create:
            found = self._created(wanted.names)
        # A topic just created may not yet be known to the broker that is asked.
        deadline = time.monotonic() + _APPEARS_WITHIN_S
        while len(found) < len(wanted.names) and time.monotonic() < deadline:
            time.sleep(0.2)
            found = self.existing(wanted.names)
        missing = [name for name in wanted.names if name not in found]
        if missing:
            raise BrokerError(_no_such_topic(missing[0], self._servers))
        return found

    def existing(self, names: Sequence[str]) -> dict[str, tuple[str, int]]:
        """The same for those of the names that exist."""
        if not names:
            return {}
        what = f"look up the topics {', '.join(names)}"

        def question(timeout: float) -> dict[str, tuple[str, int]]:
            futures = self._admin.describe_topics(
                ck.TopicCollection(list(names)), request_timeout=timeout
            )
            found = {}
            for name, future in futures.items():
                try:
                    topic = future.result()
                except ck.KafkaException as error:
                    if error.args[0].code() != ck.KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
                else:
                    found[name] = (_topic_id(topic), len(topic.partitions))
            return found

        return self._ask(what, question)

    def view(self, topics: Mapping[str, tuple[str, int]], *, committed: bool) -> ClusterView:
        """The bounds of every partition of these topics."""
        partitions = [
            TopicPartition(topic, number)
            for topic, (_, count) in sorted(topics.items())
            for number in range(count)
        ]
        earliest = self._offsets(partitions, OffsetSpec.earliest())
        high = self._offsets(partitions, OffsetSpec.latest())
        latest = (
            self._offsets(partitions, OffsetSpec.latest(), committed=True) if committed else high
        )
        return ClusterView(
            {topic: id_ for topic, (id_, _) in topics.items()},
            {tp: Bounds(earliest[tp], latest[tp], high[tp]) for tp in partitions},
        )

    def positions(self, position: Position, view: ClusterView) -> dict[TopicPartition, int]:
        """Where a position is in each partition of the view."""
        if position.kind == "earliest-offset":
            return {tp: bounds.earliest for tp, bounds in view.bounds.items()}
        if position.kind == "timestamp":
            return self._at_timestamp(position.timestamp_ms or 0, view)
        if position.kind == "specific-offsets":
            return _specific(position, view)
        if position.kind == "group-offsets":
            return self._committed(position, view)
        return view.latest

    def commit(self, positions: Positions) -> None:
        """Commits positions to the group of the properties, without waiting; trouble is one warning."""
        if self._group_member is None:
            self._group_member = self._consumer()
        offsets = [ck.TopicPartition(tp.topic, tp.partition, at) for tp, at in positions.items()]
        self._group_member.poll(0)  # hands over what became of earlier commits
        self._group_member.commit(offsets=offsets, asynchronous=True)

    def _committed_offsets(self, error: ck.KafkaError | None, _: object) -> None:
        if error is not None and not self._warned:
            self._warned = True
            logger.warning(
                "Offsets are not committed to group %r, so Kafka's tools do not show how far the query "
                "is: %s. The query itself goes on; its checkpoint decides.",
                self._group, error.str(),
            )  # fmt: skip

    def max_message_bytes(self, topics: Sequence[str]) -> int | None:
        """The smallest ``max.message.bytes`` of the topics; None when we may not know."""
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]

        def question(timeout: float) -> list[int]:
            futures = self._admin.describe_configs(resources, request_timeout=timeout)
            return [int(future.result()["max.message.bytes"].value) for future in futures.values()]

        try:
            return min(self._ask("look up topic settings", question))
        except BrokerError as error:
            logger.info("Topic settings are not known: %s", error)
            return None

    def _ask(self, what: str, question: Callable[[float], T]) -> T:
        return ask(what, self._servers, self._trouble, question)

    def _matching(self, wanted: Topics) -> list[str]:
        metadata = self._ask(
            "list topics", lambda timeout: self._admin.list_topics(timeout=timeout)
        )
        pattern = wanted.pattern
        return sorted(
            name
            for name in metadata.topics
            if pattern is not None and pattern.fullmatch(name) and not name.startswith("__")
        )

    def _created(self, names: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Lets the broker create missing topics by asking for them as a consumer does."""
        with closing(self._consumer()) as consumer:
            for name in names:
                question = partial(_metadata, consumer, name)
                self._ask(f"create topic {name}", question)
        deadline = time.monotonic() + 30.0
        while len(found := self.existing(names)) < len(names) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def _consumer(self) -> ck.Consumer:
        return ck.Consumer(
            {
                "group.id": "pyspark-upsert-kafka",
                "enable.auto.commit": False,
                "on_commit": self._committed_offsets,
                **self._config,
            }
        )

    def _offsets(
        self, partitions: Sequence[TopicPartition], spec: OffsetSpec, *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        level = (
            ck.IsolationLevel.READ_COMMITTED if committed else ck.IsolationLevel.READ_UNCOMMITTED
        )
        request = {ck.TopicPartition(tp.topic, tp.partition): spec for tp in partitions}

        def question(timeout: float) -> dict[TopicPartition, int]:
            futures = self._admin.list_offsets(
                request, isolation_level=level, request_timeout=timeout
            )
            return {
                TopicPartition(tp.topic, tp.partition): future.result().offset
                for tp, future in futures.items()
            }

        return self._ask("look up offsets", question)

    def _at_timestamp(self, timestamp_ms: int, view: ClusterView) -> dict[TopicPartition, int]:
        found = self._offsets(list(view.bounds), OffsetSpec.for_timestamp(timestamp_ms))
        return {
            tp: bounds.latest if found[tp] < 0 else min(found[tp], bounds.latest)
            for tp, bounds in view.bounds.items()
        }

    def _committed(self, position: Position, view: ClusterView) -> dict[TopicPartition, int]:
        consumer = self._consumer()
        partitions = [ck.TopicPartition(tp.topic, tp.partition) for tp in view.bounds]
        try:
            committed = self._ask(
                f"look up the offsets of group {self._group!r}",
                lambda timeout: consumer.committed(partitions, timeout=timeout),
            )
        finally:
            consumer.close()
        return {
            tp: _group_position(tp, found.offset, position, view, str(self._group))
            for found in committed
            for tp in [TopicPartition(found.topic, found.partition)]
        }


def _metadata(consumer: ck.Consumer, topic: str, timeout: float) -> object:
    return consumer.list_topics(topic, timeout=timeout)


def _without(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != name}


def _topic_id(topic: Any) -> str:
    id_ = str(topic.topic_id)
    return "" if not id_.strip("A") else id_  # brokers before Kafka 2.8: all zero


def _no_such_topic(name: str, servers: str) -> str:
    return (
        f"Topic {name!r} does not exist at {servers!r}. Create it compacted, for example: "
        f"kafka-topics.sh --bootstrap-server {servers} --create --topic {name} --partitions 4 "
        "--config cleanup.policy=compact (or let the broker create it with "
        "'properties.allow.auto.create.topics' = 'true')."
    )


def _specific(position: Position, view: ClusterView) -> dict[TopicPartition, int]:
    (topic,) = view.topic_ids
    found = {}
    for partition, offset in position.offsets:
        tp = TopicPartition(topic, partition)
        bounds = view.bounds.get(tp)
        if bounds is None:
            raise OptionError(
                f"Specific offsets name partition {partition} of topic {topic!r}, which has the "
                f"partitions 0 to {len(view.bounds) - 1}."
            )
        found[tp] = offset
    return found


def _group_position(
    tp: TopicPartition, committed: int, position: Position, view: ClusterView, group: str
) -> int:
    bounds = view.bounds[tp]
    if committed >= 0:
        if committed < bounds.earliest:
            raise DataLossError(
                tp.topic, tp.partition, committed, bounds.earliest,
                f"the offset committed by group {group!r} is gone",
            )  # fmt: skip
        return committed
    if position.reset == "none":
        raise OptionError(
            f"Group {group!r} has no committed offset for {tp}: commit one, or say where to start with "
            "'properties.auto.offset.reset' = 'earliest' or 'latest'."
        )
    return bounds.earliest if position.reset == "earliest" else bounds.latest

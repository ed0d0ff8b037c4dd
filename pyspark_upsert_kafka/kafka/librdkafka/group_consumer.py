"""Offsets that a consumer group has committed, read and written without joining the group (KIP-396).

A consumer does so that never joins it, and none of the admin client's requests to a group's coordinator: those abort the process
(librdkafka 2.16) when they end by their timeout, and the answer to who the coordinator is comes later. What is only listed
there leaves offsets out that a transaction is about to change, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.kafka.librdkafka.properties import open_client

_ANSWER_S = 5.0
"""When there is no answer for so long, the group may be one that must not be used: only an event says so."""

_COORDINATOR_MS = 6_000
"""How long a commit waits for the group's coordinator to be found, and closing with it: so librdkafka uses this timeout."""

_POLL_S = 0.1


class GroupConsumer:
    """A consumer that looks up and commits the offsets of a group.

    Args:
        config: librdkafka's configuration.
        group: The group's name.
    """

    def __init__(self, config: Mapping[str, Any], group: str) -> None:
        self._outcomes: list[tuple[ck.KafkaError | None, Sequence[ck.TopicPartition]]] = []
        outcomes = self._outcomes  # the client must not hold what holds it
        mine = {
            "group.id": group,
            "enable.auto.commit": False,
            "session.timeout.ms": _COORDINATOR_MS,
            "on_commit": lambda error, partitions: outcomes.append((error, partitions)),
        }
        self._consumer = open_client(ck.Consumer, {**config, **mine})

    def committed(
        self, partitions: Sequence[ck.TopicPartition], timeout: float
    ) -> list[ck.TopicPartition]:
        """What the group has committed; an open transaction that may change it is waited for.

        Raises:
            KafkaException: The group may not be used, or there is no answer within the timeout (seconds).
        """
        soon = min(timeout, _ANSWER_S)
        try:
            found: list[ck.TopicPartition] = self._consumer.committed(partitions, soon)
        except ck.KafkaException as error:
            self._raise_refused(0)
            if error.args[0].code() != ck.KafkaError._TIMED_OUT or soon == timeout:  # noqa: SLF001
                raise
            found = self._consumer.committed(partitions, timeout - soon)
        _check(found)
        return found

    def commit(self, offsets: Sequence[ck.TopicPartition], timeout: float) -> None:
        """Commits offsets, and waits until that is done.

        Raises:
            KafkaException: The group may not be used, or it is not done within the timeout (seconds).
        """
        self._outcomes.clear()
        self._consumer.commit(offsets=offsets, asynchronous=True)
        deadline = time.monotonic() + timeout
        while not self._outcomes:
            if time.monotonic() > deadline:
                raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT))  # noqa: SLF001
            self._raise_refused(_POLL_S)
        error, partitions = self._outcomes[0]
        if error is not None:
            raise ck.KafkaException(error)
        _check(partitions)

    def topics(self, timeout: float) -> list[str]:
        """Names of the topics that may be seen."""
        found = self._consumer.list_topics(timeout=timeout).topics
        return [name for name, topic in found.items() if topic.error is None]

    def metadata(self) -> object:
        """What a transaction needs to know of the group; nobody is asked for it."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()

    def _raise_refused(self, timeout_s: float) -> None:
        """Raises what the consumer has reported of its group; requests only wait where it may not be used."""
        event = self._consumer.poll(timeout_s)
        if event is not None and event.error() is not None and event.topic() is None:
            raise ck.KafkaException(event.error())


def _check(partitions: Iterable[ck.TopicPartition]) -> None:
    for tp in partitions:
        if tp.error is not None:
            raise ck.KafkaException(tp.error)

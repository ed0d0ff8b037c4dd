"""How many bytes are fetched, gathered and queued, whichever client is used."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import chain

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options import Topics
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.admin_requests import AdminRequests
from pyspark_upsert_kafka.kafka.cluster import KafkaCluster
from pyspark_upsert_kafka.kafka.sending.messages import Headers

logger = logging.getLogger("pyspark_upsert_kafka")

BATCH_BYTES = 16 * 1024 * 1024
"""A batch takes no more messages in when their keys, values and headers have so many bytes."""

_SAMPLE = 64
"""Of so many messages the bytes are counted, where all of them would cost time. Large messages come in smaller numbers."""

SMALL_FETCH, MEDIUM_FETCH, LARGE_FETCH = 16 * 1024, 256 * 1024, 1024 * 1024
"""Bytes that a consumer fetches at once; few sizes, since each needs a consumer of its own."""

_GUESS = 1024
"""Bytes of a message, as long as none of its topic was seen."""

_OVERHEAD = 16
"""Bytes of a message beside its key and value, about."""

_MEDIUM_RANGE = 8 * MEDIUM_FETCH

_GIVEN = "max.partition.fetch.bytes"
_MAX_MESSAGE_BYTES = "max.message.bytes"


class FetchSizes:
    """Chooses how much is fetched at once, by what a range is expected to hold.

    What a client has fetched beyond the end of a range is thrown away with it.
    """

    def __init__(self) -> None:
        self._average: dict[str, float] = {}

    def learn(self, range_: Range, count_bytes: int) -> None:
        """Takes note of how many bytes the messages of a range had, as far as they were taken out."""
        self._average[range_.topic] = count_bytes / range_.size

    def choose(self, range_: Range, properties: Mapping[str, str]) -> int:
        """Bytes to fetch at once: one of the three sizes, the largest if the user gives a size."""
        expected = range_.size * (self._average.get(range_.topic, _GUESS) + _OVERHEAD)
        if expected > _MEDIUM_RANGE or _GIVEN in properties:
            return LARGE_FETCH
        return SMALL_FETCH if expected <= SMALL_FETCH else MEDIUM_FETCH


def key_bytes(keys: Sequence[bytes | None], begin: int = 0) -> int:
    """About how many bytes keys have, from one of them on; None has none.

    >>> key_bytes([b"a", None, b"bcd"])
    4
    """
    count, step = _count_and_step(keys, begin)
    sample = keys[begin::step]
    return sum(map(len, filter(None, sample))) * count // (len(sample) or 1)


def header_bytes(headers: Sequence[Headers], begin: int = 0) -> int:
    """About how many bytes the names and values of headers have, from those of one message on.

    >>> header_bytes([[("a", b"bc"), ("d", None)], []])
    4
    """
    count, step = _count_and_step(headers, begin)
    sample = headers[begin::step]
    parts = chain.from_iterable(chain.from_iterable(sample))
    return sum(map(len, filter(None, parts))) * count // (len(sample) or 1)


def _count_and_step(column: Sequence[object], begin: int) -> tuple[int, int]:
    """How many there are from one on, and which of these are counted; an odd step, as a column may alternate."""
    count = len(column) - begin
    return count, count // _SAMPLE | 1


def max_message_bytes(admin: AdminRequests, topics: Sequence[str]) -> list[int]:
    """The ``max.message.bytes`` of each topic; nothing when the ACLs do not allow it, as they need not for writing.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
    """
    KafkaCluster(admin).topics(Topics(names=tuple(topics)))
    try:
        found = admin.topic_configs(topics, [_MAX_MESSAGE_BYTES])
    except BrokerError as error:
        logger.info("Topic settings are not known: %s", error)
        return []
    return [int(each[_MAX_MESSAGE_BYTES]) for each in found.values()]


TOO_LARGE_HINT = "(see the topic's 'max.message.bytes' and 'properties.max.request.size')"
"""Where to look when a message is too large: to append to a sentence."""


def larger_than_queue(size: int) -> str:
    """Why a message is refused that would not fit even into an empty queue."""
    return (
        f"a message of {size} bytes does not fit into the client's queue: raise "
        "'properties.buffer.memory' (bytes) or 'properties.queue.buffering.max.kbytes'"
    )

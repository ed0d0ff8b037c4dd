"""What a Kafka client does for a `RangeFetch`: the small interface that each client implements, and how large a batch is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from pyspark_upsert_kafka.core.metadata import Headers
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds
from pyspark_upsert_kafka.kafka.connections.failures import ClientErrors
from pyspark_upsert_kafka.kafka.fetching.raw_batch import RawBatch

BATCH_BYTES = 16 * 1024 * 1024
"""The bytes of keys, values and headers at which a batch takes no more messages."""

_SAMPLE = 64
"""About the number of messages whose bytes are counted: to count those of all would cost time. Where messages are large, fewer come at once."""


@dataclass
class Fetched:
    """What one poll has brought; a client fills it.

    Args:
        batch: The messages; without any, none arrived for a moment.
        position: The next offset to fetch: after the messages and gaps.
        size_bytes: About how many bytes the messages' keys and values have, and their headers if any are taken out.
        is_out_of_range: Whether the broker says that it does not have the offset at the position.
        fatal_error: Why the partition cannot be read, in the client's words; None = polling again may help.
        damage: What is wrong with the messages at the position as they came, such as their checksum; None = nothing. They
            may come well after another seek.
    """

    batch: RawBatch
    position: int
    size_bytes: int = 0
    is_out_of_range: bool = False
    fatal_error: str | None = None
    damage: str | None = None

    @property
    def may_grow(self) -> bool:
        """Whether another poll could bring the next messages."""
        return not self.is_out_of_range and self.damage is None and self.fatal_error is None


class Fetcher(Protocol):
    """Fetches one partition from where it is told. It reports what the broker says, and concludes nothing."""

    @property
    def errors(self) -> ClientErrors:
        """The errors that the client has reported since the fetcher was made."""

    def seek(self, offset: int) -> None:
        """Lets the next poll begin at this offset."""

    def poll(self, position: int, end: int) -> Fetched:
        """The next messages, waiting a moment for them; errors that pass are retried.

        Args:
            position: Where the last seek or poll has come to.
            end: Messages at and after this offset are left out.
        """

    def bounds(self) -> Bounds:
        """The bounds of the partition as a broker knows them now.

        Raises:
            BrokerError: No broker answers.
        """

    def close(self) -> None:
        """Ends fetching, so that the client can be used for another range."""


def header_bytes(headers: Sequence[Headers]) -> int:
    """About how many bytes the names and values of messages' headers have.

    The step from one message that is counted to the next is odd: where messages alternate, an even one would meet one
    of two kinds only.

    >>> header_bytes([[("a", b"bc"), ("d", None)], []])
    4
    """
    sample = headers[:: len(headers) // _SAMPLE | 1]
    parts = chain.from_iterable(chain.from_iterable(sample))
    return sum(map(len, filter(None, parts))) * len(headers) // (len(sample) or 1)

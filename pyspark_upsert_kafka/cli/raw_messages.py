"""The messages of a topic as bytes, without decoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.options.catalog import OPTIONS
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.options.values import Topics
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client


class RawMessage(NamedTuple):
    """One message of a topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def raw_messages(properties: Properties, topic: str) -> Iterator[RawMessage]:
    """The messages that a topic holds now, partition by partition, in offset order.

    Raises:
        BrokerError: No broker answers, or there is no such topic.
    """
    client = load_client(OPTIONS["kafka.client"].default)
    with closing(client.cluster(properties, "driver")) as cluster:
        view = cluster.view(cluster.topics(Topics(names=(topic,))), read_committed=True)
    settings = ReadSettings(
        properties, read_committed=True, fail_on_data_loss=False, details=frozenset()
    )
    reader = client.reader(settings)
    for (name, partition), bounds in sorted(view.bounds.items()):
        for batch in reader.read(Range(name, partition, bounds.earliest, bounds.latest)):
            for offset, key, value in zip(batch.offsets, batch.keys, batch.values, strict=True):
                yield RawMessage(partition, offset, key, value)

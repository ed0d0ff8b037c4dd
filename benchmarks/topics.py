"""Topics of the benchmarks."""

from __future__ import annotations

import uuid

from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4


def new_topic(servers: str, partitions: int = PARTITIONS) -> str:
    """A new topic."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    topic = NewTopic(name, partitions, 1, config={"cleanup.policy": "compact"})
    admin = _admin(servers)  # lives as long as its request
    admin.create_topics([topic])[name].result()
    return name


def drop_topic(servers: str, topic: str) -> None:
    """Deletes a topic, so that the disk does not fill."""
    admin = _admin(servers)
    admin.delete_topics([topic])[topic].result()


def _admin(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers, "log_level": 3})

"""The demo's topics and the connector's options for them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topics:
    """Topics on one Kafka.

    Args:
        servers: Its address.
        suffix: Added to topic names, so that two runs on one Kafka use different topics.
    """

    servers: str
    suffix: str = ""

    def named(self, name: str) -> str:
        """A topic's name on this Kafka."""
        return name + self.suffix

    def append(self, name: str) -> dict[str, str]:
        """A topic in which each message is a row of its own."""
        return {
            "topic": self.named(name),
            "properties.bootstrap.servers": self.servers,
            "properties.allow.auto.create.topics": "true",
            "value.format": "json",
        }

    def table(self, name: str, primary_key: str) -> dict[str, str]:
        """A topic that holds a table: each message upserts or deletes its key."""
        return {**self.append(name), "primary-key": primary_key, "key.format": "json"}

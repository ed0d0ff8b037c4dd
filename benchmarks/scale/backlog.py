"""Messages for many micro-batches, in transactions: every second one is aborted, so its batches have no rows."""

from __future__ import annotations

from confluent_kafka import Producer

STRETCH = 100
"""Messages of each partition in a transaction."""

KEYS = 1_000


def write(servers: str, topic: str, partitions: int, messages: int) -> None:
    """Writes at least so many messages to each partition."""
    writer = Transactions(servers, topic, partitions)
    while writer.messages < messages:
        writer.write(STRETCH)


class Transactions:
    """Writes one transaction after another.

    Args:
        servers: The bootstrap servers.
        topic: The topic.
        partitions: How many it has.
    """

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self._topic, self._partitions = topic, partitions
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": topic,
                "linger.ms": 5,
                "log_level": 0,
            }
        )
        self._producer.init_transactions()
        self._is_aborted = False
        self.messages = 0
        """Of each partition, by now."""

    def write(self, messages: int) -> None:
        """Writes a transaction of so many messages to each partition."""
        self._producer.begin_transaction()
        for number in range(self.messages, self.messages + messages):
            for partition in range(self._partitions):
                id_ = number * self._partitions % KEYS + partition
                value = f'{{"id":{id_},"n":{number}}}'
                self._producer.produce(self._topic, value, f'{{"id":{id_}}}', partition)
            self._producer.poll(0)
        self._producer.flush()  # otherwise what is aborted is never sent
        if self._is_aborted:
            self._producer.abort_transaction()
        else:
            self._producer.commit_transaction()
        self.messages += messages
        self._is_aborted = not self._is_aborted

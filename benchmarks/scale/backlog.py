"""Messages for many micro-batches: of every two stretches, one is aborted, so half of the batches have no rows."""

from __future__ import annotations

from confluent_kafka import Producer

STRETCH = 100
"""Messages of each partition in a transaction."""

KEYS = 1_000


def write(servers: str, topic: str, partitions: int, messages: int) -> None:
    """Writes at least so many messages to each partition."""
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": topic, "linger.ms": 5, "log_level": 0}
    )
    producer.init_transactions()
    for begin in range(0, messages, STRETCH):
        producer.begin_transaction()
        for number in range(begin, begin + STRETCH):
            for partition in range(partitions):
                id_ = number * partitions % KEYS + partition
                value = f'{{"id":{id_},"n":{number}}}'
                producer.produce(topic, value, f'{{"id":{id_}}}', partition)
            producer.poll(0)
        producer.flush()  # otherwise what is aborted is never sent
        if begin // STRETCH % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()

"""Dead letters: messages that cannot be decoded, sent on as they are with what was wrong."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.interfaces import Headers, Messages, RawBatch
from pyspark_upsert_kafka.source.metadata import BadMessage

_PREFIX = "__error."


class DeadLetters:
    """Sends bad messages to the dead-letter topic and returns when they are confirmed there.

    At least once: a task that runs again sends them again.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def __call__(self, batch: RawBatch, bad: Sequence[BadMessage]) -> None:
        """Sends the bad messages of a batch.

        Raises:
            BrokerError: There is no such topic.
            DeliveryError: The broker did not take one of them.
        """
        table, topic = self._options.table, str(self._options.dead_letter_topic)
        sender = load_client(table.client).sender(table.properties, (topic,), acknowledged=True)
        try:
            sender.send(_letters(topic, batch, bad))
            sender.flush()
        finally:
            sender.close()


def _letters(topic: str, batch: RawBatch, bad: Sequence[BadMessage]) -> Messages:
    return Messages(
        topic,
        [batch.keys[message.index] for message in bad],
        [batch.values[message.index] for message in bad],
        headers=[_headers(batch, message) for message in bad],
    )


def _headers(batch: RawBatch, message: BadMessage) -> Headers:
    what = {
        "topic": batch.topic,
        "partition": batch.partition,
        "offset": batch.offsets[message.index],
        "timestamp": batch.timestamps[message.index][1],
        "stage": message.stage,
        "message": _reason(batch, message),
    }
    added = [(_PREFIX + name, str(value).encode()) for name, value in what.items()]
    return [*batch.headers[message.index], *added]


def _reason(batch: RawBatch, message: BadMessage) -> str:
    """What is wrong, and that headers are missing in the dead letter where they cannot be read."""
    why = batch.bad_headers.get(message.index)
    if why is None:
        return message.reason
    reasons = [message.reason] if message.stage == "headers" else [message.reason, why]
    return f"{'; '.join(reasons)}. The dead letter is without them"

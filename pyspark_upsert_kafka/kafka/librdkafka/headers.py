"""Headers of messages, as confluent-kafka's consumer gives them."""

from __future__ import annotations

import gc

import confluent_kafka as ck

from pyspark_upsert_kafka.kafka.reading.raw_batch import BAD_HEADERS, RawBatch
from pyspark_upsert_kafka.kafka.sending.messages import Headers


def append_headers(messages: list[ck.Message], batch: RawBatch) -> None:
    """Appends the headers of each message to a batch, and why those of a message cannot be read."""
    begin = len(batch.headers)
    try:
        # A call by `map` is checked at once for an error that the binding leaves behind.
        batch.headers.extend([found or () for found in [*map(ck.Message.headers, messages)]])
    except (SystemError, UnicodeDecodeError):
        for at, message in enumerate(messages, begin):
            found = _readable(message)
            batch.headers.append(found or ())
            if found is None:
                batch.bad_headers[at] = BAD_HEADERS


def _readable(message: ck.Message) -> Headers | None:
    """Its headers; None when the key of one is not UTF-8.

    The binding says so by an error, but only when first asked. From then on it gives pairs without a key:
    not None, but no object at all, and to touch it ends the process. The collector does not count it.
    """
    try:
        (found,) = map(ck.Message.headers, (message,))
    except (SystemError, UnicodeDecodeError):
        return None
    pairs = found or ()
    return pairs if len(gc.get_referents(*pairs)) == 2 * len(pairs) else None

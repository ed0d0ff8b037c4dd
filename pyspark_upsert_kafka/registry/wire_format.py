"""Messages by the schema that they name: each begins with ``0x00`` and four bytes, a schema's id.

Confluent's documentation calls this the wire format.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.errors import SchemaError, shown
from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder

HEAD = 5
"""How many bytes stand before the datum."""

_HIGHEST = 0x7F  # in the first byte of an id, which is a positive number of 32 bits


def head_of(schema_id: int) -> bytes:
    """What a message of this schema begins with."""
    return b"\x00" + schema_id.to_bytes(4, "big")


def decoder_by_id(compile_decoder: Callable[[int], Decoder], target: pa.Schema) -> Decoder:
    """A decoder of messages of any schema.

    Args:
        compile_decoder: Compiles the decoder of one schema's messages, head and all; a SchemaError
            is the fault of each message that names this schema.
        target: The columns.
    """

    @cache
    def decoder_of(head: bytes) -> Decoder:
        if len(head) < HEAD or head[0] != 0 or head[1] > _HIGHEST:
            return _refusing(_WRONG_HEAD.format(head=shown(head)), target)
        try:
            return compile_decoder(int.from_bytes(head[1:], "big"))
        except SchemaError as error:
            return _refusing(str(error), target)

    def decode(messages: Sequence[bytes]) -> Decoded:
        if not messages:
            return Decoded(_no_rows(target))
        head = min(messages)[:HEAD]
        if head == max(messages)[:HEAD]:  # then so do all that are between the two
            return decoder_of(head)(messages)
        return _in_order(
            {
                head: (places, decoder_of(head)([messages[at] for at in places]))
                for head, places in _places_by_head(messages).items()
            },
            target,
        )

    return decode


_WRONG_HEAD = (
    "the message does not begin with a zero byte and the four bytes of a schema id, as the "
    "serializers of a schema registry write it; it begins with {head!r}"
)


def _refusing(why: str, target: pa.Schema) -> Decoder:
    def decode(messages: Sequence[bytes]) -> Decoded:
        return Decoded(_no_rows(target), dict.fromkeys(range(len(messages)), why))

    return decode


def _no_rows(target: pa.Schema) -> pa.RecordBatch:
    return batch_of([pa.array([], field.type) for field in target], target, 0)


def _places_by_head(messages: Sequence[bytes]) -> Mapping[bytes, list[int]]:
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for at, message in enumerate(messages):
        places[message[:HEAD]].append(at)
    return places


def _in_order(groups: Mapping[bytes, tuple[list[int], Decoded]], target: pa.Schema) -> Decoded:
    """The rows of all groups in the order of the messages' places."""
    errors: dict[int, str] = {}
    read_from: list[np.ndarray] = []
    for places, decoded in groups.values():
        errors |= {places[index]: why for index, why in decoded.errors.items()}
        read_from.append(np.delete(np.array(places), list(decoded.errors)))
    order = pa.array(np.argsort(np.concatenate(read_from)))
    batches = [decoded.rows for _, decoded in groups.values()]
    columns = [pa.concat_arrays(parts).take(order) for parts in zip(*batches, strict=True)]
    return Decoded(batch_of(columns, target, len(order)), errors)

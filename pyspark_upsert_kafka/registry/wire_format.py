"""Messages by the schema that they name: each begins with ``0x00`` and four bytes, a schema's id.

Confluent's documentation calls this the wire format.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.errors import SchemaError, shown
from pyspark_upsert_kafka.formats.batches import batch_of, merge_by_position
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder

HEAD = 5
"""How many bytes stand before the datum."""

_HIGHEST = 0x7F  # in the first byte of an id, which is a positive number of 32 bits


def head_of(schema_id: int) -> bytes:
    """What a message of this schema begins with."""
    return b"\x00" + schema_id.to_bytes(4, "big")


class DecoderById:
    """Decodes messages of any schema.

    Args:
        compile_decoder: Compiles the decoder of one schema's messages, head and all; a SchemaError
            is the fault of each message that names this schema.
        target: The columns.
    """

    def __init__(self, compile_decoder: Callable[[int], Decoder], target: pa.Schema) -> None:
        self._compile, self._target = compile_decoder, target
        self._decoders: dict[bytes, Decoder] = {}

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of all messages; those of one schema are decoded together."""
        if not messages:
            return Decoded(_no_rows(self._target))
        head = min(messages)[:HEAD]
        if head == max(messages)[:HEAD]:  # then so do all that are between the two
            return self._decoder(head).decode(messages)
        return merge_by_position(
            [
                (np.array(places), self._decoder(head).decode([messages[at] for at in places]))
                for head, places in _places_by_head(messages).items()
            ]
        )

    def _decoder(self, head: bytes) -> Decoder:
        if head not in self._decoders:
            self._decoders[head] = self._compiled(head)
        return self._decoders[head]

    def _compiled(self, head: bytes) -> Decoder:
        if len(head) < HEAD or head[0] != 0 or head[1] > _HIGHEST:
            return _Refusal(_WRONG_HEAD.format(head=shown(head)), self._target)
        try:
            return self._compile(int.from_bytes(head[1:], "big"))
        except SchemaError as error:
            return _Refusal(str(error), self._target)


_WRONG_HEAD = (
    "the message does not begin with a zero byte and the four bytes of a schema id, as the "
    "serializers of a schema registry write it; it begins with {head!r}"
)


@dataclass(frozen=True)
class _Refusal:
    why: str
    target: pa.Schema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        return Decoded(_no_rows(self.target), dict.fromkeys(range(len(messages)), self.why))


def _no_rows(target: pa.Schema) -> pa.RecordBatch:
    return batch_of([pa.array([], field.type) for field in target], target, 0)


def _places_by_head(messages: Sequence[bytes]) -> Mapping[bytes, list[int]]:
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for at, message in enumerate(messages):
        places[message[:HEAD]].append(at)
    return places

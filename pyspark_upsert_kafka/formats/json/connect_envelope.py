"""Messages ``{"schema":...,"payload":...}``: Kafka Connect's JSON converter puts the schema around the row unless it is told not to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from pyspark_upsert_kafka.formats.decoding import Mask, UnreadableError
from pyspark_upsert_kafka.formats.json.json_document import parse_object

_BEGINNING = b'{"schema":{"type":"struct"'
"""How the converter begins a message of columns with its schema."""

_SCHEMA, _PAYLOAD = b'"schema"', b'"payload"'
PARTS = frozenset({"schema", "payload"})
"""The fields of such a message, and no others."""


def are_envelopes(messages: Sequence[bytes]) -> Mask:
    """The mask of messages that are a payload with its schema around it, however that is written."""
    import numpy as np
    import pyarrow.compute as pc

    from pyspark_upsert_kafka.core.bytes_column import column_of

    column = column_of(messages)
    # A look at all bytes together costs nothing beside a look at each message.
    if _SCHEMA not in bytes(column.buffers()[2] or b""):
        return np.zeros(len(column), np.bool_)
    found: Mask = pc.starts_with(column, _BEGINNING).to_numpy(zero_copy_only=False)
    both = pc.and_(pc.match_substring(column, _SCHEMA), pc.match_substring(column, _PAYLOAD))
    may = both.to_numpy(zero_copy_only=False) & ~found
    for at in may.nonzero()[0].tolist():
        found[at] = is_envelope(messages[at])
    return found


def is_envelope(message: bytes) -> bool:
    """Whether a message is one, and not a row of columns with these names."""
    try:
        document = parse_object(message)
    except UnreadableError:
        return False
    return document.keys() == PARTS and _is_schema(document["schema"])


def _is_schema(value: Any) -> bool:
    return value is None or (type(value) is dict and type(value.get("type")) is str)


@dataclass(frozen=True)
class WithoutEnvelopes:
    """Decodes rows; of an envelope, in which none of their columns is, an error says what it is and what to set.

    Args:
        rows: Decodes rows.
        side: Whether they are keys or values.
    """

    rows: Decoder
    side: Literal["key", "value"]

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """All messages. Raises TooManyMessagesError."""
        import numpy as np

        from pyspark_upsert_kafka.core.bytes_column import some_of
        from pyspark_upsert_kafka.formats.decoding import Refusal, merge_by_position

        around = are_envelopes(messages)
        for at in np.flatnonzero(around).tolist():
            around[at] = is_envelope(messages[at])  # however it begins, it may be a row
        if not around.any():
            return self.rows.decode(messages)
        envelopes, others = np.flatnonzero(around), np.flatnonzero(~around)
        rows = self.rows.decode(some_of(messages, others))
        refusal = Refusal(_error(self.side), rows.rows.schema)
        bad = refusal.decode(some_of(messages, envelopes))
        return merge_by_position([(envelopes, bad), (others, rows)])


def _error(side: Literal["key", "value"]) -> str:
    also = (
        "Of Debezium's changes, 'value.format' = 'debezium-json' with 'value.debezium-json.schema-include' = 'true' reads it; of "
        "other connectors, columns schema and payload do, with the row in payload STRUCT<...>"
        if side == "value"
        else "Beside Debezium's values ('value.format' = 'debezium-json'), keys are read with their schema"
    )
    return (
        'it is the envelope of Kafka Connect\'s JSON converter, {"schema": ..., "payload": ...}, with the row in its payload. '
        f"Set '{side}.converter.schemas.enable' = 'false' in the connector, whose new messages are then the rows themselves. {also}"
    )

"""Keys beside Debezium's values: their schema, around them or in a registry, says what they mean, as that of values does.

Kafka Connect has a converter for keys and another one for values. So whether a key of JSON has its schema around it, does not
follow from what values have: the key shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark_upsert_kafka.formats import avro_confluent, json
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoded, Decoder
from pyspark_upsert_kafka.formats.debezium_types import by_avro_schema

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.binary.numbers import Numbers

_BEGINNING = b'{"schema":{"type":"struct"'
"""How Connect's JSON converter begins a key of columns with its schema."""

_SCHEMA, _PAYLOAD = b'"schema"', b'"payload"'
_PARTS = {"schema", "payload"}

_SEND = "let the connector send the schema of keys ('key.converter.schemas.enable' = 'true')"


def _json_decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of keys. Raises as that of ``json`` does."""
    from pyspark_upsert_kafka.formats.debezium_types.advice import AdvisedDecoder
    from pyspark_upsert_kafka.formats.debezium_types.by_schema import SchemaDecoder

    with_schema = SchemaDecoder(
        spec.schema,
        lambda physical: json.decoder(replace(spec, schema=physical)),
        lenient=spec.options["ignore-parse-errors"],
    )
    return _KeyDecoder(AdvisedDecoder(json.decoder(spec), spec.schema, _SEND), with_schema)


@dataclass(frozen=True)
class _KeyDecoder:
    """Decodes keys of JSON, some of which may have their schema around them."""

    plain: Decoder
    with_schema: Decoder

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """All keys. Raises TooManyMessagesError."""
        import numpy as np

        from pyspark_upsert_kafka.core.bytes_column import some_of
        from pyspark_upsert_kafka.formats.batches import merge_by_position

        around = _have_schema(messages)
        if not around.any():
            return self.plain.decode(messages)
        if around.all():
            return self.with_schema.decode(messages)
        parts = ((around, self.with_schema), (~around, self.plain))
        places = [(np.flatnonzero(mask), decoder) for mask, decoder in parts]
        return merge_by_position([(at, d.decode(some_of(messages, at))) for at, d in places])


def _have_schema(messages: Sequence[bytes]) -> Numbers:
    """For each key whether it has its schema around it."""
    import numpy as np
    import pyarrow.compute as pc

    from pyspark_upsert_kafka.core.bytes_column import column_of

    column = column_of(messages)
    # A look at all bytes together costs nothing beside a look at each key.
    if _SCHEMA not in bytes(column.buffers()[2] or b""):
        return np.zeros(len(column), np.bool_)
    found: Numbers = pc.starts_with(column, _BEGINNING).to_numpy(zero_copy_only=False)
    both = pc.and_(pc.match_substring(column, _SCHEMA), pc.match_substring(column, _PAYLOAD))
    may = both.to_numpy(zero_copy_only=False) & ~found
    for at in may.nonzero()[0].tolist():
        found[at] = _is_envelope(messages[at])
    return found


def _is_envelope(message: bytes) -> bool:
    """Whether a key is a payload beside its schema, however that is written, and not a key of columns with these names."""
    from pyspark_upsert_kafka.formats.decoding import UnreadableError
    from pyspark_upsert_kafka.formats.json.document import parse_object

    try:
        document = parse_object(message)
    except UnreadableError:
        return False
    return document.keys() == _PARTS and _is_schema(document["schema"])


def _is_schema(value: Any) -> bool:
    return value is None or (type(value) is dict and type(value.get("type")) is str)


JSON = replace(json.FORMAT, decoder=_json_decoder)

AVRO, AVRO_REGISTRY = (
    replace(format_, decoder=by_avro_schema.decoder)
    for format_ in (avro_confluent.FORMAT, avro_confluent.AVRO_REGISTRY)
)

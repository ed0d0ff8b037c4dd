"""Keys beside Debezium's values: their schema, around them or in a registry, says what they mean, as that of values does.

Kafka Connect has a converter for keys and another one for values. So whether a key of JSON has its schema around it, does not
follow from what values have: the key shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark_upsert_kafka.formats import avro_confluent, json
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoded, Decoder
from pyspark_upsert_kafka.formats.debezium_types import connect_avro

_SEND = "let the connector send the schema of keys ('key.converter.schemas.enable' = 'true')"


def _json_decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of keys. Raises as that of ``json`` does."""
    from pyspark_upsert_kafka.formats.debezium_types.connect_json import (
        AdvisedDecoder,
        SchemaDecoder,
    )

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
        from pyspark_upsert_kafka.formats.json.connect_envelope import are_envelopes

        around = are_envelopes(messages)
        if not around.any():
            return self.plain.decode(messages)
        if around.all():
            return self.with_schema.decode(messages)
        parts = ((around, self.with_schema), (~around, self.plain))
        places = [(np.flatnonzero(mask), decoder) for mask, decoder in parts]
        return merge_by_position([(at, d.decode(some_of(messages, at))) for at, d in places])


JSON = replace(json.FORMAT, decoder=_json_decoder)

AVRO, AVRO_REGISTRY = (
    replace(format_, decoder=connect_avro.decoder)
    for format_ in (avro_confluent.FORMAT, avro_confluent.AVRO_REGISTRY)
)

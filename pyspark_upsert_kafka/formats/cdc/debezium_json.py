"""``debezium-json``: Debezium's envelopes in JSON, as Flink's format of this name reads them."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StringType, StructField, StructType

from pyspark_upsert_kafka.core.options import Option, boolean
from pyspark_upsert_kafka.formats.cdc.json_envelopes import (
    OPTIONS,
    check,
    decoder,
    refuse,
    row_after,
    row_before,
    row_fields,
)
from pyspark_upsert_kafka.formats.change_format import ChangeDecoder, ChangeSpec
from pyspark_upsert_kafka.formats.codec import Format

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.codec import Decoded, Decoder

_PAYLOAD, _SCHEMA = "payload", "schema"
_INCLUDE = "schema-include"
_NO_PAYLOAD = "field 'payload' is null or missing"


def changes(spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError for a column that JSON cannot carry."""
    from pyspark_upsert_kafka.formats.cdc.before_after import read_before_after
    from pyspark_upsert_kafka.formats.cdc.debezium import DEBEZIUM, PLACES, WORDS
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import Envelope, EnvelopeDecoder
    from pyspark_upsert_kafka.formats.cdc.envelope_metadata import Place, fields_of, metadata_reader

    has_schema = spec.value.options[_INCLUDE]
    of_payload = [PLACES[key] for key in spec.metadata if key in PLACES]
    fields = [
        StructField("before", row_before(spec)),
        StructField("after", row_after(spec)),
        StructField("op", StringType()),
        *fields_of(of_payload),
    ]
    places = PLACES
    if has_schema:
        wants_schema = "value.schema" in spec.metadata
        schema = [StructField(_SCHEMA, StringType())] if wants_schema else []
        envelopes: Decoder = PayloadDecoder(
            decoder([StructField(_PAYLOAD, StructType(fields)), *schema], spec)
        )
        places = {**PLACES, "value.schema": Place((_SCHEMA,))}
    else:
        envelopes = decoder(fields, spec)
    read = read_before_after(DEBEZIUM, no_payload if has_schema else no_op)
    envelope = Envelope(envelopes, read, metadata_reader(places, spec.metadata), WORDS)
    return EnvelopeDecoder(spec, envelope, skip_bad=spec.value.options["ignore-parse-errors"])


def no_op(message: bytes) -> str:
    """What a message without ``op`` is, as the end of an error, where no schema is expected."""
    if {_SCHEMA, _PAYLOAD} <= _keys(message):
        return f"; it has a schema and a payload, which 'value.debezium-json.{_INCLUDE}' = 'true' reads"
    return ""


def no_payload(message: bytes) -> str:
    """The same where a schema is expected."""
    if "op" in _keys(message):
        return (
            f"; it has no schema around it, which 'value.debezium-json.{_INCLUDE}' = 'false' reads"
        )
    return ""


def _keys(message: bytes) -> AbstractSet[str]:
    from pyspark_upsert_kafka.formats.json.document import parse_object

    return parse_object(message).keys()


@dataclass(frozen=True)
class PayloadDecoder:
    """Decodes envelopes that stand in the field ``payload``, beside their schema.

    Args:
        whole: Decodes the messages as they are.
    """

    whole: Decoder

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The payloads, and their schemas as a column, where the messages are decoded with them."""
        import numpy as np
        import pyarrow as pa

        from pyspark_upsert_kafka.formats.codec import Decoded

        decoded = self.whole.decode(messages)
        payloads = decoded.rows.column(_PAYLOAD)
        others = [name for name in decoded.rows.schema.names if name != _PAYLOAD]
        names = [payloads.type.field(at).name for at in range(payloads.type.num_fields)]
        columns = [*payloads.flatten(), *(decoded.rows.column(name) for name in others)]
        rows = pa.RecordBatch.from_arrays(columns, [*names, *others])
        if not payloads.null_count:
            return Decoded(rows, decoded.errors, decoded.skipped)
        read = np.delete(np.arange(len(messages)), [*decoded.errors, *decoded.skipped])
        lacking = read[payloads.is_null().to_numpy(zero_copy_only=False)].tolist()
        errors = {at: f"{_NO_PAYLOAD}{no_payload(messages[at])}" for at in lacking}
        return Decoded(
            rows.filter(payloads.is_valid()), {**decoded.errors, **errors}, decoded.skipped
        )


FORMAT = Format(
    "debezium-json",
    (
        Option(
            _INCLUDE,
            boolean,
            False,
            "Whether a message has its schema beside the envelope (`value.converter.schemas.enable` of Kafka Connect).",
        ),
        *OPTIONS,
    ),
    refuse,
    refuse,
    check_decoder=check,
    fields=row_fields("after", "before"),
    changes=changes,
)

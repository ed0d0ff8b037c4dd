"""``ogg-json``: envelopes of Oracle GoldenGate in JSON, as Flink's format of this name reads them.

Beyond Flink, ``{}`` in the place of a row is none: GoldenGate writes it where it has nothing of a row.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, StringType, StructField

from pyspark_upsert_kafka.formats.cdc.envelope_format import (
    EnvelopeFields,
    Op,
    Place,
    json_decoder,
    json_format,
    local_texts,
    row_after,
    row_before,
)
from pyspark_upsert_kafka.formats.codec import ChangeDecoder, ChangeSpec

_FIELDS = EnvelopeFields(
    operation="op_type",
    known={"I": Op.INSERT, "U": Op.UPDATE, "D": Op.DELETE},
    passed_over={"T": "a truncate of the table ('op_type' is 'T')"},
    before="before",
    deleted="before",
    after="after",
    product="Ogg",
    metadata={
        "value.table": Place(("table",)),
        "value.primary-keys": Place(("primary_keys",), ArrayType(StringType())),
        "value.ingestion-timestamp": Place(("current_ts",), convert=local_texts),
        "value.event-timestamp": Place(("op_ts",), convert=local_texts),
    },
)


def _changes(spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError for a column that JSON cannot carry."""
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import EnvelopeDecoder
    from pyspark_upsert_kafka.formats.cdc.row_changes import read_before_after

    rows = [StructField("before", row_before(spec)), StructField("after", row_after(spec))]
    decoder = json_decoder([*rows, *_FIELDS.columns(spec.metadata)], spec)
    return EnvelopeDecoder(
        spec, decoder, _FIELDS, read_before_after(_FIELDS, empty_is_missing=True)
    )


FORMAT = json_format("ogg-json", _changes, ("after", "before"))

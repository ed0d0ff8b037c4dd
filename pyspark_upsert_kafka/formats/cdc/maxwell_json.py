"""``maxwell-json``: messages of Maxwell's daemon, as Flink's format of this name reads them.

Beyond Flink, the rows of a bootstrap are inserts, and what changes no row is skipped.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, LongType, StringType, StructField

from pyspark_upsert_kafka.formats.cdc.envelope_format import (
    EnvelopeFields,
    Op,
    Place,
    json_decoder,
    json_format,
    row_after,
    row_before,
    seconds,
)
from pyspark_upsert_kafka.formats.codec import ChangeDecoder, ChangeSpec

_FIELDS = EnvelopeFields(
    operation="type",
    known={
        "insert": Op.INSERT,
        "bootstrap-insert": Op.INSERT,
        "update": Op.UPDATE,
        "delete": Op.DELETE,
    },
    passed_over={
        "bootstrap-start": "the start of a bootstrap",
        "bootstrap-complete": "the end of a bootstrap",
        **{
            f"{what}-{done}": f"a change of a schema ('type' is '{what}-{done}')"
            for what in ("database", "table")
            for done in ("create", "alter", "drop")
        },
    },
    before="old",
    deleted="data",
    after="data",
    metadata={
        "value.database": Place(("database",)),
        "value.table": Place(("table",)),
        "value.primary-key-columns": Place(("primary_key_columns",), ArrayType(StringType())),
        "value.ingestion-timestamp": Place(("ts",), LongType(), seconds),
    },
)


def _changes(spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError for a column that JSON cannot carry."""
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import EnvelopeDecoder
    from pyspark_upsert_kafka.formats.cdc.row_changes import read_data_and_old

    rows = [StructField("data", row_after(spec)), StructField("old", row_before(spec))]
    decoder = json_decoder([*rows, *_FIELDS.columns(spec.metadata)], spec)
    read = read_data_and_old(_FIELDS, lenient=spec.value.options["ignore-parse-errors"])
    return EnvelopeDecoder(spec, decoder, _FIELDS, read)


FORMAT = json_format("maxwell-json", _changes, ("data",))

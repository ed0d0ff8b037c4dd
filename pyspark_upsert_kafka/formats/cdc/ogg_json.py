"""``ogg-json``: envelopes of Oracle GoldenGate in JSON, as Flink's format of this name reads them.

Beyond Flink, ``{}`` in the place of a row is none: GoldenGate writes it where it has nothing of a row.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, StringType, StructField

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


def changes(spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError for a column that JSON cannot carry."""
    from pyspark_upsert_kafka.formats.cdc.before_after import read_before_after
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import Envelope, EnvelopeDecoder
    from pyspark_upsert_kafka.formats.cdc.envelope_metadata import (
        Place,
        fields_of,
        local_texts,
        metadata_reader,
    )
    from pyspark_upsert_kafka.formats.cdc.operations import Operations
    from pyspark_upsert_kafka.formats.cdc.row_changes import Op, Words

    places = {
        "value.table": Place(("table",)),
        "value.primary-keys": Place(("primary_keys",), ArrayType(StringType())),
        "value.ingestion-timestamp": Place(("current_ts",), convert=local_texts),
        "value.event-timestamp": Place(("op_ts",), convert=local_texts),
    }
    operations = Operations(
        "op_type",
        {"I": Op.INSERT, "U": Op.UPDATE, "D": Op.DELETE},
        {"T": "a truncate of the table ('op_type' is 'T')"},
    )
    envelopes = decoder(
        [
            StructField("before", row_before(spec)),
            StructField("after", row_after(spec)),
            StructField("op_type", StringType()),
            *fields_of(places[key] for key in spec.metadata),
        ],
        spec,
    )
    envelope = Envelope(
        envelopes,
        read_before_after(operations, empty_is_missing=True),
        metadata_reader(places, spec.metadata),
        Words("before", "before", "after", "Ogg"),
    )
    return EnvelopeDecoder(spec, envelope, skip_bad=spec.value.options["ignore-parse-errors"])


FORMAT = Format(
    "ogg-json",
    OPTIONS,
    refuse,
    refuse,
    check_decoder=check,
    fields=row_fields("after", "before"),
    changes=changes,
)

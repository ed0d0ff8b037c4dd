"""``maxwell-json``: messages of Maxwell's daemon, as Flink's format of this name reads them.

Beyond Flink, the rows of a bootstrap are inserts, and what changes no row is passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, LongType, StringType, StructField

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
    from collections.abc import Callable

    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import Envelopes
    from pyspark_upsert_kafka.formats.cdc.row_changes import Reading


def changes(spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError for a column that JSON cannot carry."""
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import Envelope, EnvelopeDecoder
    from pyspark_upsert_kafka.formats.cdc.envelope_metadata import (
        Place,
        fields_of,
        metadata_reader,
        seconds,
    )
    from pyspark_upsert_kafka.formats.cdc.row_changes import Words

    places = {
        "value.database": Place(("database",)),
        "value.table": Place(("table",)),
        "value.primary-key-columns": Place(("primary_key_columns",), ArrayType(StringType())),
        "value.ingestion-timestamp": Place(("ts",), LongType(), seconds),
    }
    envelopes = decoder(
        [
            StructField("data", row_after(spec)),
            StructField("old", row_before(spec)),
            StructField("type", StringType()),
            *fields_of(places[key] for key in spec.metadata),
        ],
        spec,
    )
    lenient = spec.value.options["ignore-parse-errors"]
    envelope = Envelope(
        envelopes,
        _reader(lenient=lenient),
        metadata_reader(places, spec.metadata),
        Words("old", "data", "data"),
    )
    return EnvelopeDecoder(spec, envelope, skip_bad=lenient)


def _reader(*, lenient: bool) -> Callable[[Envelopes], Reading]:
    import numpy as np

    from pyspark_upsert_kafka.formats.cdc.data_old import explicit_nulls, rows_before
    from pyspark_upsert_kafka.formats.cdc.operations import Operations, operations_of
    from pyspark_upsert_kafka.formats.cdc.row_changes import Op, Reading, RowChanges, RowImages

    no_rows = {
        "bootstrap-start": "the start of a bootstrap",
        "bootstrap-complete": "the end of a bootstrap",
        **{
            f"{what}-{done}": f"a change of a schema ('type' is '{what}-{done}')"
            for what in ("database", "table")
            for done in ("create", "alter", "drop")
        },
    }
    operations = Operations(
        "type",
        {
            "insert": Op.INSERT,
            "bootstrap-insert": Op.INSERT,
            "update": Op.UPDATE,
            "delete": Op.DELETE,
        },
        no_rows,
    )

    def read(envelopes: Envelopes) -> Reading:
        rows = envelopes.rows
        ops, errors, passed_over = operations_of(envelopes, operations)
        data, old = RowImages.of(rows.column("data")), RowImages.of(rows.column("old"))
        places = np.arange(len(ops))
        nulls = explicit_nulls(envelopes.messages, places, old.columns, _names, lenient=lenient)
        changes = RowChanges(places, ops, rows_before(ops, data, old, nulls), data)
        return Reading(changes, errors, passed_over)

    return read


def _names(message: Any, _change: int) -> Any:
    return message["old"]


FORMAT = Format(
    "maxwell-json",
    OPTIONS,
    refuse,
    refuse,
    check_decoder=check,
    fields=row_fields("data"),
    changes=changes,
)

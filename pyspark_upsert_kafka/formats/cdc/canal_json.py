"""``canal-json``: messages of Canal, as Flink's format of this name reads them: each may hold several rows of a table.

Beyond Flink, every change of a schema is passed over, not only that of the type CREATE, and so are the watermarks that TiCDC writes
among its messages in this format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, IntegerType, LongType, MapType, StringType, StructField

from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import regular_expression
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
    from collections.abc import Callable, Sequence

_INCLUDED = {"database.include": "database", "table.include": "table"}
"""The options that say which messages are read, and the field that each looks at."""

_SCHEMA_CHANGES = (
    "CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX",
)  # fmt: skip


def changes(spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError for a column that JSON cannot carry."""
    from pyspark_upsert_kafka.formats.cdc.canal_rows import canal_reader
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import Envelope, EnvelopeDecoder
    from pyspark_upsert_kafka.formats.cdc.envelope_metadata import (
        Place,
        fields_of,
        metadata_reader,
        millis,
    )
    from pyspark_upsert_kafka.formats.cdc.operations import Operations
    from pyspark_upsert_kafka.formats.cdc.row_changes import Op, Words

    places = {
        "value.database": Place(("database",)),
        "value.table": Place(("table",)),
        "value.sql-type": Place(("sqlType",), MapType(StringType(), IntegerType())),
        "value.pk-names": Place(("pkNames",), ArrayType(StringType())),
        "value.ingestion-timestamp": Place(("ts",), LongType(), millis),
        "value.event-timestamp": Place(("es",), LongType(), millis),
    }
    operations = Operations(
        "type",
        {"INSERT": Op.INSERT, "UPDATE": Op.UPDATE, "DELETE": Op.DELETE},
        {
            **{each: f"a change of a schema ('type' is '{each}')" for each in _SCHEMA_CHANGES},
            "TIDB_WATERMARK": "a watermark of TiCDC ('type' is 'TIDB_WATERMARK')",
        },
    )
    lenient = spec.value.options["ignore-parse-errors"]
    envelopes = decoder(
        [
            StructField("data", ArrayType(row_after(spec))),
            StructField("old", ArrayType(row_before(spec))),
            StructField("type", StringType()),
            *fields_of(places[key] for key in spec.metadata),
        ],
        spec,
    )
    envelope = Envelope(
        envelopes,
        canal_reader(operations, one_row=spec.is_keyed and not spec.key, lenient=lenient),
        metadata_reader(places, spec.metadata),
        Words("old", "data", "data"),
        _chosen(spec),
    )
    return EnvelopeDecoder(spec, envelope, skip_bad=lenient)


def _chosen(spec: ChangeSpec) -> Callable[[Sequence[bytes]], Any] | None:
    """Compiles which messages are of the databases and tables that the options name; None = all are.

    A message that cannot be read, or does not say, is one of them: what is wrong with it is said when it is decoded.
    """
    import numpy as np

    patterns = {
        field: spec.value.options[option]
        for option, field in _INCLUDED.items()
        if spec.value.options[option] is not None
    }
    if not patterns:
        return None
    names = decoder([StructField(field, StringType()) for field in patterns], spec)

    def chosen(messages: Sequence[bytes]) -> Any:
        rows = names.decode(messages).rows
        wanted = np.ones(len(messages), np.bool_)
        for field, pattern in patterns.items():
            texts = rows.column(field).to_pylist()
            fits = {text: text is None or bool(pattern.fullmatch(text)) for text in {*texts}}
            wanted &= np.array([fits[text] for text in texts], np.bool_)
        return np.flatnonzero(wanted)

    return chosen


FORMAT = Format(
    "canal-json",
    (
        *OPTIONS,
        Option(
            "database.include",
            regular_expression,
            None,
            "Only messages of databases whose whole name matches this regular expression are read.",
        ),
        Option(
            "table.include",
            regular_expression,
            None,
            "Only messages of tables whose whole name matches this regular expression are read.",
        ),
    ),
    refuse,
    refuse,
    check_decoder=check,
    fields=row_fields("data"),
    changes=changes,
)

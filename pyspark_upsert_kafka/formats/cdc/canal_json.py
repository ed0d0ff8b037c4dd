"""``canal-json``: messages of Canal, as Flink's format of this name reads them: each may hold several rows of a table.

Beyond Flink, every change of a schema is skipped, not only that of the type CREATE, and so are the watermarks that TiCDC writes
among its messages in this format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import ArrayType, IntegerType, LongType, MapType, StringType, StructField

from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import regular_expression
from pyspark_upsert_kafka.formats.cdc.envelope_format import (
    OPTIONS,
    EnvelopeFields,
    Op,
    Place,
    json_decoder,
    json_format,
    millis,
    row_after,
    row_before,
)
from pyspark_upsert_kafka.formats.codec import ChangeDecoder, ChangeSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INCLUDED = {"database.include": "database", "table.include": "table"}
"""The options that say which messages are read, and the field that each looks at."""

_SCHEMA_CHANGES = (
    "CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX",
)  # fmt: skip

_FIELDS = EnvelopeFields(
    operation="type",
    known={"INSERT": Op.INSERT, "UPDATE": Op.UPDATE, "DELETE": Op.DELETE},
    passed_over={
        **{each: f"a change of a schema ('type' is '{each}')" for each in _SCHEMA_CHANGES},
        "TIDB_WATERMARK": "a watermark of TiCDC ('type' is 'TIDB_WATERMARK')",
    },
    before="old",
    deleted="data",
    after="data",
    metadata={
        "value.database": Place(("database",)),
        "value.table": Place(("table",)),
        "value.sql-type": Place(("sqlType",), MapType(StringType(), IntegerType())),
        "value.pk-names": Place(("pkNames",), ArrayType(StringType())),
        "value.ingestion-timestamp": Place(("ts",), LongType(), millis),
        "value.event-timestamp": Place(("es",), LongType(), millis),
    },
)


def _changes(spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError for a column that JSON cannot carry."""
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import EnvelopeDecoder
    from pyspark_upsert_kafka.formats.cdc.row_changes import read_lists_of_data_and_old

    rows = [
        StructField("data", ArrayType(row_after(spec))),
        StructField("old", ArrayType(row_before(spec))),
    ]
    decoder = json_decoder([*rows, *_FIELDS.columns(spec.metadata)], spec)
    read = read_lists_of_data_and_old(
        _FIELDS,
        one_row=spec.is_keyed and not spec.key,
        lenient=spec.value.options["ignore-parse-errors"],
    )
    return EnvelopeDecoder(spec, decoder, _FIELDS, read, _chosen(spec))


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
    names = json_decoder([StructField(field, StringType()) for field in patterns], spec)

    def chosen(messages: Sequence[bytes]) -> Any:
        rows = names.decode(messages).rows
        wanted = np.ones(len(messages), np.bool_)
        for field, pattern in patterns.items():
            texts = rows.column(field).to_pylist()
            fits = {text: text is None or bool(pattern.fullmatch(text)) for text in {*texts}}
            wanted &= np.array([fits[text] for text in texts], np.bool_)
        return np.flatnonzero(wanted)

    return chosen


FORMAT = json_format(
    "canal-json",
    _changes,
    ("data",),
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
)

"""Writes the table of Debezium's types into the page that has its marks: ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql.types import DataType

from pyspark_upsert_kafka.formats.cdc.semantic_types import SEMANTIC_TYPES, SemanticType

BEGIN = "<!-- Made by `make docs` from SEMANTIC_TYPES in formats/cdc. Change that, not this table. -->\n"
END = "<!-- The end of the table of Debezium's types. -->\n"

_SENT = {"int64": "whole number", "string": "text", "bytes": "bytes", "struct": "struct"}
_OWN = {
    "org.apache.kafka.connect.data.Decimal": "DECIMAL(p,s)",
    "io.debezium.data.geometry.Point": "STRUCT<x: DOUBLE, y: DOUBLE, wkb: BINARY, srid: INT>",
    "io.debezium.data.geometry.Geometry": "STRUCT<wkb: BINARY, srid: INT>",
    "io.debezium.data.geometry.Geography": "STRUCT<wkb: BINARY, srid: INT>",
}
"""The columns of types whose parts or parameters say which."""

_WITHOUT_MEANING = {
    "io.debezium.data.DoubleVector": ("array", "ARRAY<DOUBLE>"),
    "io.debezium.data.FloatVector": ("array", "ARRAY<FLOAT>"),
    "io.debezium.data.SparseDoubleVector": (
        "struct",
        "STRUCT<dimensions: SMALLINT, vector: ARRAY<ARRAY<DOUBLE>>>",
    ),
}
"""Types that are what they are sent as. In JSON a map whose keys are numbers is an array of entries, each an array of two."""


def types_table() -> str:
    """The table: each semantic type, how it is sent, the column that it means, and those that can hold it."""
    rows = [
        f"| `{name}` | {_sent(meant)} | `{_column(name, meant)}` | {_escaped(meant.fits)} |\n"
        for name, meant in SEMANTIC_TYPES.items()
    ]
    rows += [
        f"| `{name}` | {sent} | `{column}` | the same |\n"
        for name, (sent, column) in _WITHOUT_MEANING.items()
    ]
    head = (
        "| type in the schema | sent as | column | columns that can hold it |\n|---|---|---|---|\n"
    )
    return head + "".join(rows)


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;")


def _sent(meant: SemanticType) -> str:
    return next(text for kind, text in _SENT.items() if kind in meant.declared_of)


def _column(name: str, meant: SemanticType) -> str:
    return _OWN.get(name) or (
        meant.column.simpleString().upper() if isinstance(meant.column, DataType) else "STRUCT"
    )


def with_table(page: str) -> str:
    """The page with the table of today."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{types_table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")

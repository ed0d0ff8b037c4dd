"""All leaf types of Avro: those that hold no others."""

from __future__ import annotations

from typing import Any

from pyspark_upsert_kafka.formats.avro.avro_types import LOGICAL_COLUMNS, PLAIN_COLUMNS
from tests.unit.formats.avro.corpus import LEAVES


def declared(schema: Any) -> tuple[str, str]:
    """The plain type of a leaf, and its logical type."""
    return (
        (schema["type"], schema.get("logicalType", ""))
        if isinstance(schema, dict)
        else (schema, "")
    )


def test_the_laws_try_each_leaf_type() -> None:
    """Each type of the table has values in the corpus, on each plain type that it may be declared of."""
    known = {(plain, "") for plain in PLAIN_COLUMNS} | {
        (plain, name) for name, columns in LOGICAL_COLUMNS.items() for plain in columns
    }

    assert {declared(kind.schema) for kind in LEAVES} == known

"""Where the columns of a table that is read may be NOT NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.metadata import METADATA
from pyspark_upsert_kafka.core.options import ReadOptions

if TYPE_CHECKING:
    from pyspark_upsert_kafka.core.table import Table


def check_not_null(table: Table, options: ReadOptions) -> None:
    """NOT NULL is a promise that Spark relies on; allow it only where it can be kept.

    Raises:
        SchemaError: A column promises what a reader cannot keep.
    """
    metadata = {column.name: column.key for column in table.metadata}
    for field in table.schema:
        if field.nullable:
            continue
        if options.error_mode == "column":
            raise SchemaError(
                f"Column {field.name!r} is NOT NULL, but with 'error-handling.mode' = 'column' a row "
                "with an error shows NULL in it. Make it nullable."
            )
        if options.mode == "changelog" and field.name not in table.key_names:
            raise SchemaError(
                f"Column {field.name!r} is NOT NULL; in a changelog only primary-key columns may be, "
                "since a delete has nothing else to show. Make it nullable."
            )
        key = metadata.get(field.name)
        if key is not None and METADATA[key].nullable:
            raise SchemaError(
                f"Column {field.name!r} is NOT NULL, but not every message has the metadata "
                f"{key!r}. Make it nullable."
            )

"""What tells one sink from another in a receipt: its options and the columns of its rows, in a short text."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.core.delivery.receipts import digest
from pyspark_upsert_kafka.core.options import OPTIONS, WriteOptions
from pyspark_upsert_kafka.core.secrets.masking import is_secret
from pyspark_upsert_kafka.core.table.columns import Table

_ACCESS = (".url", ".descriptor-file", "-auth.credentials-source")
"""How options of formats end that say where something is and how to get it, which may change."""


def sink_identity(
    raw: Mapping[str, str], options: WriteOptions, rows: StructType, table: Table
) -> str:
    """A digest of what a sink is, the same after a restart.

    It leaves out what may change while a batch is half written: the client's properties, the number of tasks, the
    buffer, addresses and credentials. The topics and the number of tasks are in a receipt anyway.

    Args:
        raw: The options as they were given, by their names in lower case.
        options: The same, as frozen values.
        rows: The columns of the rows that are written.
        table: What they are written as.
    """
    of_table = options.table
    key_format = "" if of_table.key_format is None else of_table.key_format.name
    parts = [
        *of_table.primary_key, key_format, of_table.value_format.name, of_table.key_prefix,
        str(of_table.value_holds_key), *(f"{name} {key}" for name, key in of_table.metadata),
        options.sequence_by or "", *_format_options(raw), *_columns(rows.fields), *_columns(table.physical),
    ]  # fmt: skip
    return digest(*parts)


def _format_options(raw: Mapping[str, str]) -> list[str]:
    return [
        f"{name}={raw[name]}"
        for name in sorted(raw)
        if name.startswith(("key.", "value."))
        and name not in OPTIONS
        and not is_secret(name)
        and not name.endswith(_ACCESS)
        and ".ssl." not in name
    ]


def _columns(fields: tuple[StructField, ...] | list[StructField]) -> list[str]:
    """Names and types, without NOT NULL, which changes nothing of a row."""
    return [f"{field.name.lower()} {field.dataType.simpleString()}" for field in fields]

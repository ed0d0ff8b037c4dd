"""A micro-batch and the table that it is merged into."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BooleanType, StructField, StructType

from pyspark_upsert_kafka.connector.changelog.change_order import several_partitions
from pyspark_upsert_kafka.connector.changelog.changelog_columns import ChangeColumns, change_columns
from pyspark_upsert_kafka.connector.lakehouse.changes_by_key import flags_name, unavailable_columns
from pyspark_upsert_kafka.connector.lakehouse.column_types import conformed, field_named
from pyspark_upsert_kafka.connector.lakehouse.lakehouse_tables import (
    Merge,
    fitting_columns,
    merge_statement,
)
from pyspark_upsert_kafka.connector.lakehouse.merge_settings import MergeSettings
from pyspark_upsert_kafka.core.ddl.spark_columns import quoted
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.warning import warn_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Batch:
    """The columns of a micro-batch, and how they come into the table.

    Args:
        schema: The columns.
        columns: Which is what.
        settings: The arguments of `merge_sink`.
        flags: The name of the column that `changes_by_key` adds.
    """

    schema: StructType
    columns: ChangeColumns
    settings: MergeSettings
    flags: str

    @classmethod
    def of(cls, rows: DataFrame, settings: MergeSettings) -> Batch:
        """The columns of a batch, checked.

        Raises:
            SchemaError: A column is missing, cannot be what it is to be, or has the name of the column that says that a row
                is deleted; or the DataFrame is a stream.
        """
        schema = rows.schema
        columns = change_columns(schema, settings.primary_key, "merge_sink")
        if rows.isStreaming:
            raise SchemaError(
                "merge_sink takes a batch, and this DataFrame is a stream: use stream.writeStream.foreachBatch(merge_sink(...))."
            )
        deleted = settings.deleted_column
        if deleted is not None and field_named(deleted, schema) is not None:
            raise SchemaError(
                f"merge_sink: the stream has a column {deleted!r}, which is also the name of the column that says that a row is "
                "deleted. Give that another name, with deleted_column."
            )
        return cls(schema, columns, settings, flags_name(schema))

    def merge(self, changes: DataFrame) -> None:
        """Merges the changes into the table as it is now; it is created or changed first, if it has to be.

        Args:
            changes: What `changes_by_key` has made of the batch.
        """
        session = changes.sparkSession
        there = fitting_columns(session, self.settings.table, self._wanted, self.settings.schema)
        found = {name: field_named(name, there) for name in self.columns.all}
        stored = {name: field for name, field in found.items() if field is not None}
        in_types_of_table = (
            conformed(changes[quoted(name)], self.schema[name].dataType, field.dataType).alias(field.name)
            for name, field in stored.items()
        )  # fmt: skip
        view = f"merge_sink_{uuid.uuid4().hex}"
        changes.select(*in_types_of_table, self.flags).createOrReplaceTempView(view)
        try:
            session.sql(merge_statement(self._merge(view, stored, there)))
        finally:
            session.catalog.dropTempView(view)

    def _merge(self, view: str, stored: Mapping[str, StructField], there: StructType) -> Merge:
        settings = self.settings
        deleted = settings.deleted_column and field_named(settings.deleted_column, there)
        unavailable = unavailable_columns(self.schema, self.columns, settings)
        return Merge(
            table=settings.table.sql,
            changes=view,
            keys=[stored[key].name for key in self.columns.keys],
            columns=[field.name for field in stored.values()],
            deletes=settings.deletes,
            deleted_column=deleted.name if deleted else None,
            unavailable={stored[name].name: place for place, name in enumerate(unavailable)},
            flags=self.flags,
            **self._known_place(stored),
        )

    def _known_place(self, stored: Mapping[str, StructField]) -> dict[str, Any]:
        """The columns of the table that say when and where its row was last changed; none unless it says both."""
        timestamp, places = self.columns.timestamp, self.columns.place
        known = [stored[name].name for name in places if name in stored]
        if timestamp is None or timestamp not in stored or self.columns.partition not in stored:
            return {}
        return {"timestamp": stored[timestamp].name, "place": known}

    def _wanted(self, there: StructType) -> StructType:
        """The columns that the table must have: metadata columns only if it has them."""
        wanted = [
            self.schema[name]
            for name in self.columns.all
            if name in self.columns.row or field_named(name, there) is not None
        ]
        if self.settings.deleted_column is not None:
            wanted.append(StructField(self.settings.deleted_column, BooleanType()))
        return StructType(wanted)


def has_changes(changes: DataFrame, columns: ChangeColumns, flags: str) -> bool:
    """Whether there is anything to merge, checked; it warns once if a key lies in several partitions.

    Args:
        changes: One row for each key.
        columns: Its columns.
        flags: The column that `changes_by_key` has added.

    Raises:
        SchemaError: A column of the key is NULL.
    """
    from pyspark.sql import functions as f

    place = f.struct(columns.partition, columns.offset)
    nulls = (f.min(f.when(f.col(quoted(key)).isNull(), place)) for key in columns.keys)
    several = f.max(f.col(f"{flags}.in_several_partitions"))
    count, is_in_several, *places = changes.agg(f.count("*"), several, *nulls).collect()[0]
    for key, null in zip(columns.keys, places, strict=True):
        if null is not None:
            raise SchemaError(
                f"merge_sink: column {key!r} of the primary key is NULL in the change at {_shown(null)}. Nothing of this batch "
                "was written. Leave such rows out, with df.where(...), or choose another key."
            )
    if is_in_several:
        warn_once(several_partitions(columns, "merge_sink"))
    return bool(count)


def _shown(place: Any) -> str:
    partition, offset = ("NULL" if part is None else part for part in place)
    return f"partition {partition}, offset {offset}"

"""The changes of a micro-batch become one row for each key: what a MERGE takes.

The table must be the same however the changes were cut into micro-batches. So what earlier changes of a key would have left
in the table counts too, where the last change does not replace it: the row that a soft delete leaves as it was, and values
that the last change did not send.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from pyspark_upsert_kafka.connector.changelog.changelog_columns import ChangeColumns
from pyspark_upsert_kafka.connector.changelog.last_changes import (
    in_several_partitions,
    newest_first,
    unknown_kind,
    with_times,
)
from pyspark_upsert_kafka.connector.lakehouse.lakehouse_tables import PLACE
from pyspark_upsert_kafka.connector.lakehouse.merge_settings import Deletes, MergeSettings
from pyspark_upsert_kafka.core.changes import SPELLINGS, SPELLINGS_OF, Change
from pyspark_upsert_kafka.core.ddl.spark_columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_UPSERT, _DELETE = "upsert", "delete"


def flags_name(*schemas: StructType) -> str:
    """A name with which no column of them begins."""
    taken = [name.lower() for schema in schemas for name in schema.names]
    name = "_merge"
    while any(each.startswith(name) for each in taken):
        name += "_"
    return name


def unavailable_columns(
    schema: StructType, columns: ChangeColumns, settings: MergeSettings
) -> tuple[str, ...]:
    """The columns that may have a value that was not sent; none unless the settings have a text for it."""
    text = settings.unavailable
    return tuple(
        name
        for name in columns.row
        if text is not None
        and name not in columns.keys
        and placeholders(schema[name].dataType, text)
    )


def changes_by_key(
    rows: DataFrame, columns: ChangeColumns, settings: MergeSettings, flags: str
) -> DataFrame:
    """The changes of each key as one row.

    A row before an update (``update_preimage``) counts as a delete, unless a row after an update has the same key and
    the same place: then the update has not changed the key.

    Args:
        rows: A batch of changes.
        columns: Its columns.
        settings: What a delete does, and which values were not sent.
        flags: The name of a column to add.

    Returns:
        The same columns, and a struct: ``has_row`` (else the row of the key is deleted, and only the key counts),
        ``is_deleted`` (the last change is a delete), ``unavailable`` (for each of `unavailable_columns`, whether the
        table's value stays), ``in_several_partitions`` (the key has changes in more than one), and, if there are timestamps,
        ``time``, ``partition`` and, if there is a column of topics, ``topic`` of the last change.
    """
    from pyspark.sql import functions as f

    kind = f"{flags}_kind"
    known = rows.withColumn(kind, _kind(columns))
    if columns.timestamp is not None:
        known = with_times(known, columns, f"{flags}_time")
    if settings.deletes is Deletes.IGNORE:
        known = known.where(f.col(kind) == _UPSERT)
    if settings.deletes is Deletes.SOFT or unavailable_columns(rows.schema, columns, settings):
        return _with_values_of_earlier_changes(known, columns, settings, flags)
    return _last(known, columns, flags)


def _kind(columns: ChangeColumns) -> Column:
    """Whether a row is an upsert or a delete."""
    from pyspark.sql import functions as f

    spelled = f.lower(f.col(columns.change_type))
    deletes = (*SPELLINGS_OF[Change.DELETE], *SPELLINGS_OF[Change.UPDATE_PREIMAGE])
    return (
        f.when(spelled.isin(*SPELLINGS_OF[Change.UPSERT]), _UPSERT)
        .when(spelled.isin(*deletes), _DELETE)
        .otherwise(unknown_kind(columns, "merge_sink", SPELLINGS))
    )


def _last(known: DataFrame, columns: ChangeColumns, flags: str) -> DataFrame:
    """The last change of each key is all that counts."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    newest = [*newest_first(columns, f"{flags}_time"), f.desc(f"{flags}_kind")]
    by_key = Window.partitionBy(*map(quoted, columns.keys)).orderBy(*newest)
    number, several = f"{flags}_number", f"{flags}_several"
    numbered = known.select(
        "*",
        f.row_number().over(by_key).alias(number),
        in_several_partitions(columns, by_key).alias(several),
    )
    has_row = f.col(f"{flags}_kind") == _UPSERT
    return numbered.where(f.col(number) == 1).select(
        *map(quoted, columns.all),
        _flags(has_row, ~has_row, f.lit(None), columns, flags).alias(flags),
    )


def _with_values_of_earlier_changes(
    known: DataFrame, columns: ChangeColumns, settings: MergeSettings, flags: str
) -> DataFrame:
    """The row of the last upsert of each key, with values of earlier changes for those that it did not send.

    Where a delete deletes the row, nothing that was before it counts.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    schema = known.schema
    by_key = Window.partitionBy(*map(quoted, columns.keys))
    newest = newest_first(columns, f"{flags}_time")
    by_place = by_key.orderBy(*newest)
    is_upsert = f.col(f"{flags}_kind") == _UPSERT
    in_order = by_key.orderBy(*newest, f.desc(f"{flags}_kind"))
    all_of_key = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    up_to_here = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    same_place = by_place.rangeBetween(Window.currentRow, Window.currentRow)

    deletes = f.lit(False)
    if settings.deletes is Deletes.HARD:
        deletes = ~f.max(is_upsert).over(same_place)
    with_deletes = known.withColumn(f"{flags}_deletes", deletes)
    deleted_since = f.max(f.col(f"{flags}_deletes")).over(up_to_here)
    counting = with_deletes.withColumn(f"{flags}_counts", is_upsert & ~deleted_since)
    counts = f.col(f"{flags}_counts")

    whole = f.struct(*(f.col(quoted(name)).alias(_nth(n)) for n, name in enumerate(columns.all)))
    unavailable = unavailable_columns(schema, columns, settings)
    found = counting.select(
        "*",
        f.row_number().over(in_order).alias(f"{flags}_number"),
        whole.alias(f"{flags}_whole"),
        f.first(f.when(counts, whole), ignorenulls=True).over(all_of_key).alias(f"{flags}_row"),
        f.max(f.col(f"{flags}_deletes")).over(all_of_key).alias(f"{flags}_replaced"),
        in_several_partitions(columns, in_order).alias(f"{flags}_several"),
        *(
            f.first(f.when(counts & ~_was_not_sent(name, schema, settings), _box(name)), ignorenulls=True)
            .over(all_of_key)
            .alias(f"{flags}_sent_{n}")
            for n, name in enumerate(unavailable)
        ),
    )  # fmt: skip
    sent = {name: f.col(f"{flags}_sent_{n}") for n, name in enumerate(unavailable)}
    row, replaced = f.col(f"{flags}_row"), f.col(f"{flags}_replaced")
    stays = [value.isNull() & ~replaced for value in sent.values()]
    here = f.coalesce(row, f.col(f"{flags}_whole"))
    return found.where(f.col(f"{flags}_number") == 1).select(
        *(
            (sent[name].getField("it") if name in sent else here.getField(_nth(n))).alias(name)
            for n, name in enumerate(columns.all)
        ),
        _flags(
            row.isNotNull(), ~is_upsert, f.array(*stays) if stays else f.lit(None), columns, flags
        ).alias(flags),
    )


def _was_not_sent(name: str, schema: StructType, settings: MergeSettings) -> Column:
    from pyspark.sql import functions as f

    return _is_unavailable(f.col(quoted(name)), schema[name].dataType, str(settings.unavailable))


def _box(name: str) -> Column:
    """A value, which may be NULL, as one that is not."""
    from pyspark.sql import functions as f

    return f.struct(f.col(quoted(name)).alias("it"))


def _nth(n: int) -> str:
    return f"c{n}"


def _flags(
    has_row: Column, is_deleted: Column, unavailable: Column, columns: ChangeColumns, flags: str
) -> Column:
    from pyspark.sql import functions as f

    newest: list[Column] = []
    if columns.timestamp is not None:
        place = zip(PLACE, columns.place, strict=False)
        newest = [
            f.col(f"{flags}_time").alias("time"),
            *(f.col(column).alias(part) for part, column in place),
        ]
    return f.struct(
        has_row.alias("has_row"),
        is_deleted.alias("is_deleted"),
        unavailable.cast("array<boolean>").alias("unavailable"),
        f.col(f"{flags}_several").alias("in_several_partitions"),
        *newest,
    )


def placeholders(kind: DataType, text: str) -> list[Any]:
    """What Debezium's connector for Postgres writes in place of a value; none for a type that cannot hold it.

    Texts and bytes are the text itself. An array has it as its only element, one of numbers has its bytes, one of UUIDs
    the UUID made of its MD5. A map has it as its only key.

    >>> placeholders(ArrayType(IntegerType()), "ab"), placeholders(LongType(), "ab")
    ([[97, 98]], [])
    """
    data = text.encode()
    if isinstance(kind, StringType):
        return [text]
    if isinstance(kind, BinaryType):
        return [data]
    if isinstance(kind, MapType):
        return placeholders(kind.keyType, text) if isinstance(kind.keyType, StringType) else []
    return _arrays(kind.elementType, text, data) if isinstance(kind, ArrayType) else []


def _arrays(element: DataType, text: str, data: bytes) -> list[Any]:
    if isinstance(element, (IntegerType, LongType)):
        return [list(data)]
    if isinstance(element, StringType):
        return [[text], [str(UUID(bytes=_md5(data), version=3))]]
    return [[data]] if isinstance(element, BinaryType) else []


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _is_unavailable(column: Column, kind: DataType, text: str) -> Column:
    """Whether a value is one of its placeholders; false for NULL."""
    from pyspark.sql import functions as f

    seen = column
    if isinstance(kind, MapType):
        seen = f.when(f.size(column) == 1, f.map_keys(column)[0])
    found = f.lit(False)
    for placeholder in placeholders(kind, text):
        found = found | (seen == _literal(placeholder, kind))
    return f.coalesce(found, f.lit(False))


def _literal(value: Any, kind: DataType) -> Column:
    from pyspark.sql import functions as f

    if isinstance(value, list) and isinstance(kind, ArrayType):
        return f.array(*(_literal(each, kind.elementType) for each in value))
    if isinstance(value, bytes):
        return f.lit(bytearray(value))
    if isinstance(kind, (IntegerType, LongType)):
        return f.lit(value).cast(kind)
    return f.lit(value)

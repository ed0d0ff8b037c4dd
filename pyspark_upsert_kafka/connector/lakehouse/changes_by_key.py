"""The changes of a micro-batch become one row for each key: what a MERGE takes.

The table must be the same however the changes were cut into micro-batches. So what earlier changes of a key would have left
in the table counts too, where the last change does not replace it: the row that a soft delete leaves as it was, and values
that the last change did not send. For the same reason a change of a lower sequence than one before it is left out: it would have
changed nothing in a batch of its own.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CalendarIntervalType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructType,
    VariantType,
)

from pyspark_upsert_kafka.connector.changelog.changelog_columns import ChangeColumns
from pyspark_upsert_kafka.connector.changelog.last_changes import (
    newest_first,
    places_of_key,
    unknown_kind,
    with_times,
)
from pyspark_upsert_kafka.connector.lakehouse.merge_settings import Deletes, MergeSettings
from pyspark_upsert_kafka.connector.lakehouse.merge_statement import PLACE
from pyspark_upsert_kafka.core.changes import SPELLINGS, SPELLINGS_OF, Change
from pyspark_upsert_kafka.core.ddl.spark_columns import quoted, type_as_ddl
from pyspark_upsert_kafka.core.errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_UPSERT, _DELETE = "upsert", "delete"

_WITHOUT_ORDER = (
    ArrayType,
    CalendarIntervalType,
    MapType,
    NullType,
    StructType,
    VariantType,
)
"""Types whose values have no order, or none that a person would expect."""


def flags_name(*schemas: StructType) -> str:
    """A name with which no column of them begins."""
    taken = [name.lower() for schema in schemas for name in schema.names]
    name = "_merge"
    while any(each.startswith(name) for each in taken):
        name += "_"
    return name


def sequence_columns(
    schema: StructType, columns: ChangeColumns, settings: MergeSettings
) -> tuple[str, ...]:
    """The columns that say which change is newer, as the batch spells them.

    Raises:
        SchemaError: The batch has no such column, or its values have no order.
    """
    found = []
    for name in settings.sequence_by:
        alike = [each for each in columns.all if each.lower() == name.lower()]
        if not alike:
            raise SchemaError(
                f"merge_sink: sequence_by names {name!r}, which is no column. The columns: {', '.join(columns.all)}."
            )
        kind = schema[alike[0]].dataType
        if isinstance(kind, _WITHOUT_ORDER):
            raise SchemaError(
                f"merge_sink: sequence_by names {name!r}, which is {type_as_ddl(kind)}: its values have no order. Name columns of "
                "numbers, times or texts."
            )
        found.append(alike[0])
    return tuple(found)


def partial_columns(
    schema: StructType, columns: ChangeColumns, settings: MergeSettings
) -> tuple[str, ...]:
    """The columns of which a change may not send the value, so that the table's value stays."""
    needed = {*columns.keys, *sequence_columns(schema, columns, settings)}
    return tuple(
        name
        for name in columns.row
        if name not in needed and (settings.ignores_nulls or _placeholders(name, schema, settings))
    )


def shown_of_last_change(
    schema: StructType, columns: ChangeColumns, settings: MergeSettings
) -> tuple[str, ...]:
    """The columns that show the last change, a delete that leaves the row too: metadata, and what says how new the row is."""
    sequence = sequence_columns(schema, columns, settings)
    return (*columns.metadata, columns.change_type, *(each for each in sequence if each in columns.row))  # fmt: skip


def may_be_nan(kind: DataType) -> bool:
    """Whether a type has NaN, which says as little of how new a change is as NULL."""
    return isinstance(kind, (FloatType, DoubleType))


def changes_by_key(
    rows: DataFrame, columns: ChangeColumns, settings: MergeSettings, flags: str, *, is_table: bool
) -> DataFrame:
    """The changes of each key as one row.

    A row before an update (``update_preimage``) counts as a delete, unless a row after an update has the same key and
    the same place: then the update has not changed the key.

    Args:
        rows: A batch of changes.
        columns: Its columns.
        settings: What a delete does, which change is newer, and which values were not sent.
        flags: The name of a column to add.
        is_table: Whether the batch must be a whole table, each key once and no delete. A row that contradicts fails the query.

    Returns:
        The same columns, and a struct: ``has_row`` (else the row of the key is deleted, and only the key counts),
        ``is_deleted`` (the last change is a delete), ``is_reborn`` (the row was deleted before its last change, where a delete
        deletes it), ``places`` (the lowest and the highest, if the key has changes in several partitions), and the order of some
        changes, by which older ones are known: that of the ``last`` change, of the one that has the ``row``, and of those that
        have ``sent`` the values of `partial_columns` (NULL = the table's value stays). An order has ``s0``, ``s1``, ... (of the
        sequence), ``time`` if there are timestamps, ``partition``, and ``topic`` if there is a column of topics.
    """
    from pyspark.sql import functions as f

    kind = f"{flags}_kind"
    known = rows.withColumn(kind, _kind(columns))
    if is_table:
        known = known.withColumn(kind, _kind_in_table(columns, kind))
    if columns.timestamp is not None:
        known = with_times(known, columns, f"{flags}_time")
    known = known.withColumn(f"{flags}_order", _order(known.schema, columns, settings, flags))
    if settings.deletes is Deletes.IGNORE:
        known = known.where(f.col(kind) == _UPSERT)
    is_partial = bool(partial_columns(rows.schema, columns, settings))
    if settings.sequence_by or is_partial:
        known = _without_images(known, columns, flags)
    if settings.sequence_by:
        known = _without_older(known, columns, settings, flags)
    if settings.deletes is Deletes.SOFT or is_partial:
        return _laid_over(known, columns, settings, flags)
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


def _kind_in_table(columns: ChangeColumns, kind: str) -> Column:
    """The kind of change in a batch that is a table; the query fails at a delete, and at a key that has two changes in one place."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    partition, offset = (f.col(name).cast("string") for name in (columns.partition, columns.offset))

    def refused(what: str) -> Column:
        text = f.concat(
            f.lit("SchemaError: merge_sink: first_batch = 'table', and batch 0 has "), f.lit(what), f.lit(" at partition "), partition,
            f.lit(", offset "), offset, f.lit(
                ": so it is not the table, but changes of it. Nothing was written. Start the query with 'scan.startup.mode' = 'full' and a "
                "new checkpoint, or leave out first_batch."
            ),
        )  # fmt: skip
        return f.raise_error(text).cast("string")

    of_key = Window.partitionBy(*map(quoted, columns.keys), *columns.place)
    return (
        f.when(f.col(kind) == _DELETE, refused("a delete"))
        .when(f.count("*").over(of_key) > 1, refused("several changes of one key, one of them"))
        .otherwise(f.col(kind))
    )


def _order(
    schema: StructType, columns: ChangeColumns, settings: MergeSettings, flags: str
) -> Column:
    """What says how new a change is: its sequence, and when and where it was made."""
    from pyspark.sql import functions as f

    sequence = []
    for at, name in enumerate(sequence_columns(schema, columns, settings)):
        value = f.col(quoted(name))
        if may_be_nan(schema[name].dataType):
            value = f.when(~f.isnan(value), value)
        sequence.append(value.alias(f"s{at}"))
    time = [] if columns.timestamp is None else [f.col(f"{flags}_time").alias("time")]
    place = zip(PLACE, columns.place, strict=False)
    return f.struct(*sequence, *time, *(f.col(column).alias(part) for part, column in place))


def _oldest_first(columns: ChangeColumns, flags: str) -> list[Column]:
    from pyspark.sql import functions as f

    times = [] if columns.timestamp is None else [f"{flags}_time"]
    return [f.asc(name) for name in (*times, *columns.place, columns.offset)]


def _without_images(known: DataFrame, columns: ChangeColumns, flags: str) -> DataFrame:
    """The changes without deletes of keys that a row of the same message has: the message has not deleted them."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    is_upsert = f.col(f"{flags}_kind") == _UPSERT
    by_place = Window.partitionBy(*map(quoted, columns.keys)).orderBy(
        *_oldest_first(columns, flags)
    )
    same_place = by_place.rangeBetween(Window.currentRow, Window.currentRow)
    beside = f"{flags}_beside"
    found = known.withColumn(beside, f.max(is_upsert).over(same_place))
    return found.where(is_upsert | ~f.col(beside)).drop(beside)


def _without_older(
    known: DataFrame, columns: ChangeColumns, settings: MergeSettings, flags: str
) -> DataFrame:
    """The changes without those whose sequence is lower than that of a change before them in the log.

    They change nothing, as in a batch of their own. What is left is in order by its sequence and by the log.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = f.col(f"{flags}_order")
    sequence = f.struct(*(order.getField(f"s{at}") for at in range(len(settings.sequence_by))))
    in_log = Window.partitionBy(*map(quoted, columns.keys)).orderBy(*_oldest_first(columns, flags))
    up_to_here = in_log.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    highest = f"{flags}_highest"
    found = known.withColumn(highest, f.max(sequence).over(up_to_here))
    return found.where(sequence >= f.col(highest)).drop(highest)


def _last(known: DataFrame, columns: ChangeColumns, flags: str) -> DataFrame:
    """The last change of each key is all that counts."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    newest = [*newest_first(columns, f"{flags}_time"), f.desc(f"{flags}_kind")]
    by_key = Window.partitionBy(*map(quoted, columns.keys)).orderBy(*newest)
    number, places, deletes = f"{flags}_number", f"{flags}_places", f"{flags}_deletes"
    has_row = f.col(f"{flags}_kind") == _UPSERT
    message = f.struct(*columns.place, columns.offset)
    # The upsert of a message stands before its delete of the same key, which has not deleted it.
    is_beside = f.coalesce(f.lag(message).over(by_key) == message, f.lit(False))
    numbered = known.select(
        "*",
        f.row_number().over(by_key).alias(number),
        places_of_key(columns, by_key).alias(places),
        (~has_row & ~is_beside).alias(deletes),
    )
    of_key = by_key.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    numbered = numbered.withColumn(deletes, f.max(deletes).over(of_key))
    flag = f.struct(
        has_row.alias("has_row"),
        (~has_row).alias("is_deleted"),
        (has_row & f.col(deletes)).alias("is_reborn"),
        f.col(places).alias("places"),
        f.col(f"{flags}_order").alias("last"),
    )
    return numbered.where(f.col(number) == 1).select(*map(quoted, columns.all), flag.alias(flags))


def _laid_over(
    known: DataFrame, columns: ChangeColumns, settings: MergeSettings, flags: str
) -> DataFrame:
    """The row of the last upsert of each key, with values of earlier changes for those that it did not send.

    Where a delete deletes the row, nothing that was before it counts: it sends NULL, as it were.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    schema = known.schema
    by_key = Window.partitionBy(*map(quoted, columns.keys))
    in_order = by_key.orderBy(*newest_first(columns, f"{flags}_time"), f.desc(f"{flags}_kind"))
    all_of_key = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    up_to_here = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    is_upsert = f.col(f"{flags}_kind") == _UPSERT
    order, has_row_since = f.col(f"{flags}_order"), f.col(f"{flags}_has_row_since")
    empties = ~is_upsert & has_row_since
    if settings.deletes is not Deletes.HARD and not settings.ignores_nulls:
        empties = f.lit(False)

    whole = f.struct(*(f.col(quoted(name)).alias(_nth(n)) for n, name in enumerate(columns.all)))
    row = f.struct(whole.alias("values"), order.alias("order"))
    partial = partial_columns(schema, columns, settings)

    def sends(name: str) -> Column:
        not_sent = _not_sent(name, schema, settings)
        return _sent(f.col(quoted(name)), not_sent, is_upsert, empties, order)

    with_rows = known.withColumn(f"{flags}_has_row_since", f.max(is_upsert).over(up_to_here))
    found = with_rows.select(
        "*",
        f.row_number().over(in_order).alias(f"{flags}_number"),
        whole.alias(f"{flags}_whole"),
        f.first(f.when(is_upsert, row), ignorenulls=True).over(all_of_key).alias(f"{flags}_row"),
        places_of_key(columns, in_order).alias(f"{flags}_places"),
        f.max(~is_upsert).over(all_of_key).alias(f"{flags}_deletes"),
        *(
            f.first(sends(name), ignorenulls=True)
            .over(all_of_key)
            .alias(f"{flags}_sent_{n}")
            for n, name in enumerate(partial)
        ),
    )  # fmt: skip
    sent = {name: f.col(f"{flags}_sent_{n}") for n, name in enumerate(partial)}
    row, last = f.col(f"{flags}_row"), f.col(f"{flags}_whole")
    of_last = shown_of_last_change(schema, columns, settings)
    has_row = row.isNotNull() if settings.deletes is Deletes.SOFT else is_upsert

    def value(n: int, name: str) -> Column:
        if name in sent:
            return sent[name].getField("it")
        if name in of_last:
            return last.getField(_nth(n))
        of_row = row.getField("values").getField(_nth(n))
        return f.coalesce(of_row, last.getField(_nth(n))) if name in columns.keys else of_row

    orders = [f.array(*(each.getField("order") for each in sent.values())).alias("sent")] if sent else []  # fmt: skip
    flag = f.struct(
        has_row.alias("has_row"),
        (~is_upsert).alias("is_deleted"),
        (is_upsert & f.col(f"{flags}_deletes")).alias("is_reborn"),
        f.col(f"{flags}_places").alias("places"),
        order.alias("last"),
        row.getField("order").alias("row"),
        *orders,
    )
    return found.where(f.col(f"{flags}_number") == 1).select(
        *(value(n, name).alias(name) for n, name in enumerate(columns.all)), flag.alias(flags)
    )


def _sent(
    column: Column, not_sent: Column, is_upsert: Column, empties: Column, order: Column
) -> Column:
    """The value that a change sends of a column, which may be NULL, and the order of the change; NULL if it sends none."""
    from pyspark.sql import functions as f

    sent = f.struct(f.when(is_upsert, column).alias("it"), order.alias("order"))
    return f.when((is_upsert & ~not_sent) | empties, sent)


def _not_sent(name: str, schema: StructType, settings: MergeSettings) -> Column:
    """Whether an upsert leaves the value of a column as it is."""
    from pyspark.sql import functions as f

    column = f.col(quoted(name))
    not_sent = column.isNull() if settings.ignores_nulls else f.lit(False)
    if not _placeholders(name, schema, settings):
        return not_sent
    return not_sent | _is_unavailable(column, schema[name].dataType, str(settings.unavailable))


def _nth(n: int) -> str:
    return f"c{n}"


def _placeholders(name: str, schema: StructType, settings: MergeSettings) -> list[Any]:
    if settings.unavailable is None:
        return []
    return placeholders(schema[name].dataType, settings.unavailable)


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

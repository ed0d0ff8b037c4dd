"""The statements of a script as DataFrames: tables are loaded, and the columns of a query are cast to the types of the columns that they fill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.ddl.spark_columns import name_as_ddl, quoted
from pyspark_upsert_kafka.core.ddl.types import types_within
from pyspark_upsert_kafka.sql.script_compiler import Job
from pyspark_upsert_kafka.sql.script_tables import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00"})


_WHOLE: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)

_NUMBERS: tuple[type[DataType], ...] = (*_WHOLE, DecimalType, FloatType, DoubleType)

_FROM: dict[type[DataType], tuple[type[DataType], ...]] = {
    ShortType: _WHOLE[:1],
    IntegerType: _WHOLE[:2],
    LongType: _WHOLE[:3],
    DecimalType: _NUMBERS,
    FloatType: (*_WHOLE, DecimalType),
    DoubleType: _NUMBERS,
    DateType: (TimestampNTZType, TimestampType),
    TimestampNTZType: (TimestampType,),
    TimestampType: (TimestampNTZType,),
}


def frame_of(spark: SparkSession, job: Job) -> DataFrame:
    """The rows of a statement, in the columns and types of the table that it writes.

    Nothing is read for it: Spark looks at the columns only.

    Raises:
        OptionError: Spark does not take the query, or a column has a type that Flink does not cast implicitly; it names line and
            column.
    """
    _check_time_zone(spark, job)
    tables: dict[str, Any] = {
        name: _loaded(spark, table, job) for name, table in job.query.tables.items()
    }
    try:
        rows = spark.sql(job.query.sql, **tables)
        fields = rows.schema.fields
    except (AnalysisException, ParseException) as error:
        raise job.place.error(f"Spark rejects this query: {_first_line(error)}") from None
    return _printed(rows, job) if job.table is None else _filling(rows, fields, job, job.table)


def _loaded(spark: SparkSession, table: Table, job: Job) -> DataFrame:
    if not job.is_stream:
        reader = spark.read.format("upsert-kafka")
        return reader.options(**table.options(batch=True)).load()
    stream = spark.readStream.format("upsert-kafka").options(**table.options(batch=False))
    columns = table.columns_in_order()
    rows = (stream if columns is None else stream.schema(columns)).load()
    if table.is_append and table.watermark is not None:
        column, delay = table.watermark
        return rows.withWatermark(name_as_ddl(column), delay)
    return rows


def _printed(rows: DataFrame, job: Job) -> DataFrame:
    """The rows without the column that only a sink needs, which is the last one."""
    if job.query.rows is None or not job.query.rows.in_order:
        return rows
    by_place, columns = _by_place(rows)
    shown = zip(columns[:-1], rows.columns, strict=False)
    return by_place.select(*(column.alias(name) for column, name in shown))


def _filling(rows: DataFrame, fields: list[StructField], job: Job, table: Table) -> DataFrame:
    by_place, columns = _by_place(rows)
    shown = []
    for field, column, target in zip(fields, columns, job.columns, strict=False):
        _check_type(field.dataType, target, job, table)
        shown.append(column.cast(target.dataType).alias(target.name))
    hidden = () if job.query.rows is None else job.query.rows.hidden
    for column, name in zip(columns[len(columns) - len(hidden) :], hidden, strict=True):
        shown.append(column.alias(name))
    return by_place.select(*shown)


def _by_place(rows: DataFrame) -> tuple[DataFrame, list[Column]]:
    """The rows under names that tell their columns apart, and those columns: a query may give two of one name."""
    names = [f"c{at}" for at in range(len(rows.columns))]
    return rows.toDF(*names), [f.col(name) for name in names]


def _check_type(source: DataType, target: StructField, job: Job, table: Table) -> None:
    if not is_implicit_cast(source, target.dataType):
        raise job.place.error(
            f"the query gives {_shown(source)} to column {quoted(target.name)} of '{table.name}', which is "
            f"{_shown(target.dataType)}: CAST it, as Flink demands too."
        )


def _check_time_zone(spark: SparkSession, job: Job) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    part = job.query.only_in_utc
    if part is not None and zone not in _UTC:
        raise part.place.error(
            f"{part.why} unless the time zone is UTC, and it is {zone}: SET 'table.local-time-zone' = 'UTC'."
        )


def _shown(kind: DataType) -> str:
    return kind.simpleString().upper()


def _first_line(error: Exception) -> str:
    text = str(error).split("SQLSTATE")[0].split("\n")[0].strip()
    return text if text.endswith((".", "?")) else f"{text}."


def is_implicit_cast(source: DataType, target: DataType) -> bool:
    """Whether a value of one type may be written to a column of another type without CAST.

    >>> is_implicit_cast(IntegerType(), LongType()), is_implicit_cast(LongType(), IntegerType())
    (True, False)
    """
    if isinstance(source, NullType) or type(source) in _FROM.get(type(target), ()):
        return True
    if type(source) is not type(target):
        return False
    within, wanted = types_within(source), types_within(target)
    return len(within) == len(wanted) and all(map(is_implicit_cast, within, wanted))

"""What a ``CREATE TABLE`` statement means here: columns, options and watermark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pyspark.sql.types import (
    DataType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.ddl.parsing import read_create_table
from pyspark_upsert_kafka.core.ddl.statement import CreateTable, Name
from pyspark_upsert_kafka.core.ddl.tokens import Place, Tokens
from pyspark_upsert_kafka.core.ddl.with_clause import options_of
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.table.ddl_text import name_as_ddl


@dataclass(frozen=True)
class TableDefinition:
    """A table as a statement defines it.

    Args:
        name: Its name, without catalog and database.
        columns: All columns, with NOT NULL where the statement has it.
        virtual: Names of the columns that are for reading only.
        options: The connector's options by name; some may be secret.
        places: Where each option stands in the statement, by the name that it has in ``options``.
        watermark: Column and delay for ``withWatermark``; None = it has none.
        spelt: Names of options as they are written, by their lower case, of those that have capital letters.
    """

    name: str
    columns: StructType
    virtual: frozenset[str]
    options: Mapping[str, str] = field(repr=False)
    places: Mapping[str, Place] = field(repr=False)
    watermark: tuple[str, str] | None = None
    spelt: Mapping[str, str] = field(default_factory=dict, repr=False)


@lru_cache(maxsize=16)  # upsert_sink and the hooks of a query ask for the same statement many times
def table_definition(ddl: str) -> TableDefinition:
    """The definition in a text that holds one statement, with or without a semicolon.

    Raises:
        OptionError: Something is not understood, or not supported; it names line and column.

    >>> defined = table_definition('''
    ...     CREATE TABLE views (page STRING, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL)
    ...     WITH ('connector' = 'kafka', 'topic' = 'views', 'format' = 'json')
    ... ''')
    >>> defined.options["value.format"], defined.options["metadata.at"], defined.virtual
    ('json', 'timestamp', frozenset({'at'}))
    """
    first, *others = create_tables(Tokens(ddl))
    if others:
        raise others[0].place.error("expected one statement and nothing after it.")
    return definition_of(first)


def create_tables(tokens: Tokens) -> Iterator[CreateTable]:
    """The statements of a script in which each is a ``CREATE TABLE``; there is at least one.

    Raises:
        OptionError: A statement is another one, or not understood.
    """
    yield read_create_table(tokens)
    while tokens.accept_mark(";") and tokens.peek().kind != "end":
        yield read_create_table(tokens)
    if tokens.peek().kind != "end":
        tokens.refuse("expected ';' or the end of the statement")


def definition_of(statement: CreateTable) -> TableDefinition:
    """What a statement says, as columns, options and watermark of a table.

    Raises:
        OptionError: Its parts contradict each other, or name a column, connector or metadata key that is not known.
    """
    _check_columns(statement)
    options, places = options_of(statement)
    watermark = statement.watermark
    written = [option.name.text for option in statement.options]
    names = {column.name.text.lower(): column.name.text for column in statement.columns}
    return TableDefinition(
        statement.name[-1],
        StructType([StructField(c.name.text, c.type, c.nullable) for c in statement.columns]),
        frozenset(column.name.text for column in statement.columns if column.virtual),
        options,
        places,
        (names[watermark.column.text.lower()], watermark.delay) if watermark else None,
        {name.lower(): name for name in written if name != name.lower()},
    )


def _check_columns(statement: CreateTable) -> None:
    """Raises OptionError for a column that is there twice, and for a key or a watermark that names no column."""
    physical: set[str] = set()
    known: dict[str, DataType] = {}
    for column in statement.columns:
        name = column.name.text.lower()
        if name in known:
            raise column.name.place.error(
                f"column '{column.name.text}' is there more than once (the case of letters makes no "
                "difference in Spark)."
            )
        known[name] = column.type
        if column.metadata is None:
            physical.add(name)
    if not physical:
        raise statement.place.error(
            f"table '{statement.name[-1]}' has no column that is in its messages."
        )
    for key in statement.primary_key:
        if key.text.lower() not in physical:
            raise key.place.error(f"the primary key's '{key.text}' is no column of the messages.")
    if statement.watermark is not None:
        _check_watermark(statement.watermark.column, known)


def _check_watermark(column: Name, known: Mapping[str, DataType]) -> None:
    type_ = known.get(column.text.lower())
    if type_ is None:
        raise column.place.error(f"the watermark's '{column.text}' is no column.")
    if not isinstance(type_, (TimestampType, TimestampNTZType)):
        raise column.place.error(
            f"the watermark's column '{column.text}' is {type_.simpleString().upper()}; it must be a TIMESTAMP or "
            "TIMESTAMP_LTZ."
        )


def watermark_of(ddl: str) -> tuple[str, str]:
    """Returns the watermark of a ``CREATE TABLE`` statement. A Spark source cannot set a watermark itself.

    Args:
        ddl: The statement, as for the option ``ddl``.

    Returns:
        Column and delay, for ``withWatermark``. A name that has other characters than letters, digits and underscores stands in
        backticks.

    Raises:
        OptionError: The table has no watermark, or the statement is not understood.

    Example::

        from pyspark_upsert_kafka import watermark_of

        ddl = '''
            CREATE TABLE views (page STRING, at TIMESTAMP_LTZ(3), WATERMARK FOR at AS at - INTERVAL '2' SECOND)
            WITH ('connector' = 'kafka', 'topic' = 'views', 'format' = 'json',
                  'properties.bootstrap.servers' = 'localhost:9092')
        '''
        views = spark.readStream.format("upsert-kafka").option("ddl", ddl).load()
        views = views.withWatermark(*watermark_of(ddl))

    >>> from pyspark_upsert_kafka import watermark_of
    >>> watermark_of('''
    ...     CREATE TABLE views (page STRING, at TIMESTAMP_LTZ(3), WATERMARK FOR at AS at - INTERVAL '2' SECOND)
    ...     WITH ('connector' = 'kafka', 'topic' = 'views', 'format' = 'json')
    ... ''')
    ('at', '2 seconds')
    """
    definition = table_definition(ddl)
    if definition.watermark is None:
        raise OptionError(
            f"Table '{definition.name}' has no WATERMARK in its CREATE TABLE statement: add "
            "WATERMARK FOR column AS column - INTERVAL '5' SECOND, or call withWatermark by hand."
        )
    column, delay = definition.watermark
    return name_as_ddl(column), delay

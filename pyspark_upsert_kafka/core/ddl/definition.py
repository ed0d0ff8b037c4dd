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

from pyspark_upsert_kafka.core.ddl.spark_columns import name_as_ddl
from pyspark_upsert_kafka.core.ddl.statement import Column, CreateTable, Name, read_create_table
from pyspark_upsert_kafka.core.ddl.tokens import Place, Tokens
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import ALL_METADATA, CDC_FORMATS


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
    options, places = _options_of(statement)
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


_UPSERT, _APPEND = "upsert-kafka", "kafka"

_FROM_TOPICS = (
    " A database's changes are read from the topic that Debezium with Kafka Connect writes: 'connector' = 'kafka', 'format' = "
    "'debezium-json'."
)
_NO_KEY_ALLOWED = (
    "The Kafka table '{name}' doesn't support defining PRIMARY KEY constraint on the table, because it can't "
    "guarantee the semantic of primary key. Leave it out, or use 'connector' = 'upsert-kafka'."
)
"""The wording of Flink's ``KafkaDynamicTableFactory``."""

_NOT_INSERT_ONLY = (
    "'upsert-kafka' connector doesn't support '{name}' as value format, because '{name}' is not in insert-only mode. Use "
    "'connector' = 'kafka' with 'format' = '{name}'; with a PRIMARY KEY it is an upsert table."
)
"""The first sentence is that of Flink's ``UpsertKafkaDynamicTableFactory``."""


def _options_of(statement: CreateTable) -> tuple[dict[str, str], dict[str, Place]]:
    """The options of this connector that a statement gives, and where each of them stands.

    Raises:
        OptionError: The connector is another one, or an option contradicts the rest.
    """
    given: dict[str, str] = {}
    places: dict[str, Place] = {}
    for option in statement.options:
        name = option.name.text.lower()
        if name in given:
            raise option.name.place.error(f"option '{option.name.text}' is there more than once.")
        given[name], places[name] = option.value, option.name.place
    connector = _connector(statement, given, places)
    if connector == _APPEND:
        given, places = _of_kafka(statement, given, places)
    elif given.get("value.format") in CDC_FORMATS:
        name = given["value.format"]
        raise places["value.format"].error(_NOT_INSERT_ONLY.format(name=name))
    if statement.primary_key:
        given["primary-key"] = ",".join(map(_key_name, statement.primary_key))
        places["primary-key"] = statement.primary_key[0].place
    for column in statement.columns:
        if column.metadata is not None:
            name = f"metadata.{column.name.text.lower()}"
            given[name], places[name] = (
                _metadata_key(column, column.metadata),
                column.metadata.place,
            )
    return given, places


def _connector(statement: CreateTable, given: dict[str, str], places: dict[str, Place]) -> str:
    """Takes option ``connector`` out of the options, and returns its value."""
    if "connector" not in given:
        raise statement.place.error(
            f"table '{statement.name[-1]}' has no 'connector' in WITH: expected '{_UPSERT}' or '{_APPEND}'."
        )
    connector = given.pop("connector")
    if connector not in (_UPSERT, _APPEND):
        of_topics = _FROM_TOPICS if connector.endswith("-cdc") else ""
        raise places["connector"].error(
            f"connector '{connector}' is not read or written here, only '{_UPSERT}' and '{_APPEND}'.{of_topics}"
        )
    return connector


def _of_kafka(
    statement: CreateTable, given: dict[str, str], places: dict[str, Place]
) -> tuple[dict[str, str], dict[str, Place]]:
    """The options of the connector ``kafka``, where ``format`` means ``value.format``."""
    prefix = f"{given.get('format', '')}."
    renamed = {
        name: f"value.{name}"
        for name in given
        if name == "format" or ("format" in given and name.startswith(prefix))
    }
    for old, new in renamed.items():
        if new in given:
            raise places[old].error(f"'{old}' and '{new}' mean the same: leave one out.")
    options = {renamed.get(name, name): value for name, value in given.items()}
    places = {renamed.get(name, name): place for name, place in places.items()}
    return {**_kafka_mode(statement, options, places), **options}, places


def _kafka_mode(
    statement: CreateTable, options: dict[str, str], places: dict[str, Place]
) -> dict[str, str]:
    """How a table of the connector ``kafka`` is read: with a CDC format and a primary key, as an upsert table."""
    name = options.get("value.format")
    if name not in CDC_FORMATS:
        if statement.primary_key:
            sentence = _NO_KEY_ALLOWED.format(name=statement.name[-1])
            raise statement.primary_key[0].place.error(sentence)
        return {"read.mode": "append"}
    if statement.primary_key:
        return {}
    if "key.fields" in options:
        raise places["key.fields"].error(
            f"with '{name}' 'key.fields' needs a PRIMARY KEY of the same columns: the table is then an upsert table."
        )
    return {"read.mode": "changelog"}


def _key_name(name: Name) -> str:
    if "," in name.text or name.text != name.text.strip():
        raise name.place.error(
            f"the name of the key column '{name.text}' holds a comma, or a blank at an end, which option "
            "'primary-key' cannot say. Rename the column."
        )
    return name.text


def _metadata_key(column: Column, key: Name) -> str:
    known = [known for known, metadata in ALL_METADATA.items() if metadata.column != "_error"]
    if key.text.lower() not in known:
        where = "" if key is column.name else f" of column '{column.name.text}'"
        raise key.place.error(
            f"the metadata key '{key.text}'{where} is not known: expected one of "
            f"{', '.join(map(repr, known))}."
        )
    return key.text.lower()

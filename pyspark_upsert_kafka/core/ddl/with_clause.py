"""The ``WITH`` clause and the key of a statement as options of this connector."""

from __future__ import annotations

from pyspark_upsert_kafka.core.ddl.statement import Column, CreateTable, Name
from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.core.table.cdc_formats import CDC_FORMATS
from pyspark_upsert_kafka.core.table.metadata import ALL_METADATA

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


def options_of(statement: CreateTable) -> tuple[dict[str, str], dict[str, Place]]:
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
    if "format" in given and "value.format" in given:
        raise places["format"].error("'format' and 'value.format' mean the same: leave one out.")
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

"""The options that were given, each under one name, together with those of a DDL; an option that is given separately wins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.core.ddl.definition import TableDefinition, table_definition
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.masking import has_literal_secret, literal_secrets
from pyspark_upsert_kafka.core.options.catalog import (
    DDL,
    DDL_COLUMNS,
    EVENT_TIME,
    INTERNAL,
    NAMES,
    VIRTUAL,
    Given,
)
from pyspark_upsert_kafka.core.options.properties import PREFIX, SPELLINGS

_TOPICS = frozenset({"topic", "topic-pattern", "path", "paths"})
_KEYS = frozenset({"primary-key", "key.fields"})


def option_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options of a function as texts, which Spark makes of those of ``.option(...)``.

    Raises:
        OptionError: An option is None.

    >>> option_texts({"topic": "t", "sink.parallelism": 2, "failOnDataLoss": True})
    {'topic': 't', 'sink.parallelism': '2', 'failOnDataLoss': 'true'}
    """
    return {name: _text(name, value) for name, value in options.items()}


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        raise OptionError(f"Option '{name}' is None; leave it out, or give it a value.")
    return str(value)


def given_options(raw: Mapping[str, str]) -> Given:
    """The options with their names in lower case, and each client property under one of its names.

    The option ``ddl`` is replaced by the options that its statement declares.

    Raises:
        OptionError: There are none, a property is given under two names with different values, or the
            statement is not understood.
    """
    if isinstance(raw, Given):
        return raw
    given = one_spelling({name.lower(): value for name, value in raw.items()})
    if given.keys() <= {"checkpointlocation", "queryname"}:
        raise OptionError(
            "No options arrived. Spark does not pass the options of a CREATE TABLE statement to Python "
            "sources: give them with the query, as in SELECT * FROM t WITH ('topic' = '...', "
            "'properties.bootstrap.servers' = '...', 'primary-key' = '...', 'key.format' = 'json', "
            "'value.format' = 'json')."
        )
    as_given = {name.lower(): name for name in raw}
    spelt = {name: written for name, written in as_given.items() if name != written}
    found, shown = Given(given, spelt={**NAMES.read(given), **spelt}), dict(raw)
    if (statement := found.pop(DDL.name, None)) is not None:
        definition = table_definition(statement)
        if not has_literal_secret(definition.options):
            del shown[as_given[DDL.name]]
        found = options_of(definition, found)
    return Given(found, found.places, found.spelt, tuple(literal_secrets(shown)))


def one_spelling(given: Mapping[str, str]) -> dict[str, str]:
    """Options with each property under one of its names.

    Raises:
        OptionError: A property is given under two names with different values.

    >>> one_spelling({"topic": "t", "properties.request.required.acks": "1"})
    {'topic': 't', 'properties.acks': '1'}
    """
    spelt: dict[str, str] = {}
    names: dict[str, str] = {}
    for given_name, value in given.items():
        bare = given_name.removeprefix(PREFIX)
        is_alias = bare != given_name and bare in SPELLINGS
        name = PREFIX + SPELLINGS[bare] if is_alias else given_name
        if spelt.setdefault(name, value).strip() != value.strip():
            raise OptionError(
                f"Options '{names[name]}' and '{given_name}' are two names of the same setting, and have "
                "different values: leave one out."
            )
        names.setdefault(name, given_name)
    return spelt


def as_spark_passes_on(given: Given) -> dict[str, str]:
    """The options for ``.options(...)`` of Spark, which gives their names in lower case: `given_options` reads them again."""
    return {**given, NAMES.name: json.dumps(given.spelt)} if given.spelt else dict(given)


def options_of(
    definition: TableDefinition, beside: Mapping[str, str] = MappingProxyType({})
) -> Given:
    """The options of a table that a statement defines, with those given beside it.

    Raises:
        OptionError: A property of the client is there under two names with different values, or the statement has an
            internal option.
    """
    for name in sorted(INTERNAL & definition.options.keys()):
        raise definition.places[name].error(f"option '{name}' is internal: leave it out.")
    inside = one_spelling(definition.options)
    replaced = {*beside, *_replaced(inside, beside)}
    kept = {name: value for name, value in inside.items() if name not in replaced}
    places = {name: place for name, place in definition.places.items() if name in kept}
    spelt = {name: definition.spelt[name] for name in kept if name in definition.spelt}
    if isinstance(beside, Given):
        spelt |= beside.spelt
    return Given({**kept, **beside, DDL_COLUMNS.name: _columns_as_text(definition)}, places, spelt)


def _replaced(inside: Mapping[str, str], beside: Mapping[str, str]) -> Iterator[str]:
    """Names of options in the statement that mean nothing any more, given what stands beside it."""
    for spellings in (_TOPICS, _KEYS):
        if not spellings.isdisjoint(beside):
            yield from spellings
    for position in ("scan.startup.", "scan.bounded."):
        modes = {_position_mode(position, each) for each in (inside, beside)}
        if len(modes - {None}) > 1:
            yield from (name for name in inside if name.startswith(position))
        times = {f"{position}timestamp", f"{position}timestamp-millis"}
        if not times.isdisjoint(beside):
            yield from times
    for side in ("key", "value"):
        if _differs(f"{side}.format", inside, beside):
            prefix = f"{side}.{inside[f'{side}.format']}."
            yield from (name for name in inside if name.startswith(prefix))


def _position_mode(position: str, options: Mapping[str, str]) -> str | None:
    """The mode of a position, which a time says too; None = no option says it."""
    mode = options.get(f"{position}mode")
    return "timestamp" if mode is None and f"{position}timestamp" in options else mode


def _differs(name: str, inside: Mapping[str, str], beside: Mapping[str, str]) -> bool:
    return name in inside and name in beside and inside[name] != beside[name]


def _columns_as_text(definition: TableDefinition) -> str:
    """The columns as they are passed on; one that is virtual, or the watermark's, says so."""
    event_time = definition.watermark[0] if definition.watermark else None
    fields = []
    for field in definition.columns:
        marks = {VIRTUAL: field.name in definition.virtual, EVENT_TIME: field.name == event_time}
        set_ = {mark: True for mark, is_set in marks.items() if is_set}
        fields.append(StructField(field.name, field.dataType, field.nullable, set_))
    return StructType(fields).json()


def missing_options(said: str, name: str, value: str) -> OptionError:
    """The error that options are missing, in Flink's words.

    Args:
        said: Their names.
        name: The name of one of them, for an example.
        value: A value for it.
    """
    return OptionError(
        f"One or more required options are missing. Missing required options are: {said}. "
        f"For example: .option('{name}', '{value}')"
    )

"""The options that were given, each under one name, together with those of a DDL; an option that is given separately wins.

Which names are unknown or missing is told with what may be meant instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
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
    OPTIONS,
    SPARKS_OWN,
    VIRTUAL,
    Given,
    Option,
    OptionFamily,
    where,
)
from pyspark_upsert_kafka.core.options.properties import PREFIX, SPELLINGS, one_spelling
from pyspark_upsert_kafka.core.pages import page

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
    given = one_spelling({name.lower(): value for name, value in raw.items()})
    if given.keys() <= {"checkpointlocation", "queryname"}:
        raise OptionError(
            "No options arrived. Spark does not pass the options of a CREATE TABLE statement to Python "
            "sources: give them with the query, as in SELECT * FROM t WITH ('topic' = '...', "
            "'properties.bootstrap.servers' = '...', 'primary-key' = '...', 'key.format' = 'json', "
            "'value.format' = 'json')."
        )
    if isinstance(raw, Given):
        return Given(given, raw.places, raw.spelt)
    as_given = {name.lower(): name for name in raw}
    spelt = {name: written for name, written in as_given.items() if name != written}
    found = Given(given, spelt={**NAMES.read(given), **spelt})
    return _with_ddl(found) if DDL.name in found else found


def as_spark_passes_on(given: Given) -> dict[str, str]:
    """The options for ``.options(...)`` of Spark, which gives their names in lower case: `given_options` reads them again."""
    return {**given, NAMES.name: json.dumps(given.spelt)} if given.spelt else dict(given)


def _with_ddl(given: Given) -> Given:
    """The options with those of the statement among them, in its place."""
    beside = {name: value for name, value in given.items() if name != DDL.name}
    return options_of(table_definition(given[DDL.name]), Given(beside, spelt=given.spelt))


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


def secret_warnings(given: Mapping[str, str]) -> list[str]:
    """What is to be told of literal secrets that Spark would show; the statement is one if it holds one."""
    shown = dict(given)
    for name in given:
        if name.lower() == DDL.name and not has_literal_secret(
            table_definition(shown[name]).options
        ):
            del shown[name]
    return literal_secrets(shown)


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


FormatOptions = Callable[[str, str], tuple[Option, ...]]
"""Name of a format and side (``key``, ``value``) -> the options that the format declares."""


_NEAR, _LIKE, _LIKE_A_PREFIX = 0.9, 0.6, 0.75
"""How similar two names must be when one letter is wrong, when a word is wrong, and when the prefix of a family is wrong."""

_RENAMED: dict[str, str | None] = {
    "assign": "topic",
    "subscribe": "topic",
    "subscribepattern": "topic-pattern",
    "startingoffsets": "scan.startup.mode",
    "startingoffsetsbytimestamp": "scan.startup.timestamp-millis",
    "startingtimestamp": "scan.startup.timestamp-millis",
    "endingoffsets": "scan.bounded.mode",
    "endingoffsetsbytimestamp": "scan.bounded.timestamp-millis",
    "endingtimestamp": "scan.bounded.timestamp-millis",
    "sink.partitioner": None,
    "sink.transaction-naming-strategy": None,
    "format": "value.format",
    "kafkaconsumer.polltimeoutms": "properties.default.api.timeout.ms",
    "fetchoffset.numretries": "properties.default.api.timeout.ms",
}
"""Names from Spark's and Flink's ``kafka`` connectors, and what means the same here; None = nothing."""

_INSTEAD = {
    "includeheaders": "a column '_headers' in the schema shows them",
    "groupidprefix": "the connector joins no consumer group",
    "startingoffsetsbytimestampstrategy": "a start after the last message is the end of the topic",
    "fetchoffset.retryintervalms": "attempts are 0.1 to 1 second apart",
    "maxrecordsperpartition": "'minPartitions' splits partitions",
}
"""Names from Spark's ``kafka`` connector without a name here, and what takes their place."""

_FAMILIES = {
    option.prefix: option for option in OPTIONS.values() if isinstance(option, OptionFamily)
}

_OF_CLIENTS = {*SPELLINGS, *SPELLINGS.values()}

_PREFIXES_OF_CLIENTS = ("sasl.", "ssl.", "security.")


def check_known(given: Mapping[str, str], formats: FormatOptions) -> None:
    """Raises OptionError with every unknown name, what each can mean, and at the end the names that are known."""
    declared = [*(("", option) for option in OPTIONS.values()), *_of_formats(given, formats)]
    supported = {
        (prefix + option.name).lower(): prefix + option.name
        for prefix, option in declared
        if not isinstance(option, OptionFamily)
    }
    families = [(prefix, option) for prefix, option in declared if isinstance(option, OptionFamily)]
    known = {*supported, *SPARKS_OWN, *INTERNAL}
    unknown = [
        name
        for name in sorted(given)
        if name not in known
        and not any(family.has(name, prefix) for prefix, family in families)
        and not _is_of_a_later_format(name, given)
    ]
    if unknown:
        raise OptionError(
            "Unsupported options found for 'upsert-kafka': "
            + ", ".join(_told(name, given, supported, formats) for name in unknown)
            + f".\n\nSupported options, which {page('options.md')} explains: "
            + ", ".join(sorted(prefix + option.name for prefix, option in declared))
            + "."
        )


def _told(
    name: str, given: Mapping[str, str], supported: Mapping[str, str], formats: FormatOptions
) -> str:
    """An unknown option, where it stands, and what it can mean."""
    why = _of_another_format(name, given, formats) or hint(name, supported)
    return f"'{name}'{where(name, given)}{why}"


def _of_another_format(name: str, given: Mapping[str, str], formats: FormatOptions) -> str:
    """Says that the option belongs to a format that the side does not have, if it does."""
    side, _, rest = name.partition(".")
    format_ = given.get(f"{side}.format") if side in ("key", "value") else None
    other = rest.partition(".")[0]
    if format_ is None or other == format_ or not _is_format(other, side, formats):
        return ""
    return f" (it belongs to the format '{other}', and '{side}.format' is '{format_}')"


def _is_format(name: str, side: str, formats: FormatOptions) -> bool:
    try:
        return bool(formats(name, side))
    except OptionError:
        return False


def _of_formats(given: Mapping[str, str], formats: FormatOptions) -> Iterator[tuple[str, Option]]:
    """The options of the formats that are chosen, each with its prefix."""
    for side in ("key", "value"):
        name = OPTIONS[f"{side}.format"].read(given)
        if name is not None:
            yield from ((f"{side}.{name}.", option) for option in formats(name, side))


def _is_of_a_later_format(name: str, given: Mapping[str, str]) -> bool:
    """Whether the name belongs to a format that is yet to be named."""
    side, _, rest = name.partition(".")
    return side in ("key", "value") and "." in rest and f"{side}.format" not in given


def check_required(given: Mapping[str, str], *, keyed: bool) -> None:
    """Raises OptionError with every required name that is missing."""
    examples = {"properties.bootstrap.servers": "localhost:9092", "value.format": "json"}
    if keyed:
        examples["key.format"] = "json"
    missing = sorted(name for name in examples if not given.get(name, "").strip())
    if missing:
        said = ", ".join(f"{name}{meant_by(name, given)}" for name in missing)
        raise missing_options(said, missing[0], examples[missing[0]])


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


def hint(name: str, supported: Mapping[str, str]) -> str:
    """The names that can be meant, as the end of what is said of a name; empty when there are none.

    Args:
        name: The name that was given, in lower case.
        supported: Names as declared, by their lower case.

    >>> hint("subscribe", {"topic": "topic"}), hint("header", {"topic": "topic"})
    (" (Did you mean 'topic'?)", '')
    """
    if name in _INSTEAD:
        return f" ({_INSTEAD[name]})"
    meant = " or ".join(f"'{each}'" for each in _meant(name, supported))
    return f" (Did you mean {meant}?)" if meant else ""


def meant_by(required: str, given: Iterable[str]) -> str:
    """The given name by which a required one can be meant; empty when there is none.

    >>> meant_by("properties.bootstrap.servers", ["topic", "properties.bootstrap.server"])
    " ('properties.bootstrap.server' was given)"
    """
    others = [name for name in given if name != required]
    near = get_close_matches(required, others, n=1, cutoff=_NEAR)
    return f" ('{near[0]}' was given)" if near else ""


def _meant(name: str, supported: Mapping[str, str]) -> Sequence[str]:
    if name in _RENAMED:
        meant = _RENAMED[name]
        return [] if meant is None else [meant]
    for_sides = [f"{side}.{name}" for side in ("key", "value")]
    return (
        [supported[each] for each in for_sides if each in supported]
        or _nearest(name, supported, 1, _NEAR)
        or _of_the_client(name, supported)
        or _in_a_family(name)
        or _nearest(name, _of_its_side(name, supported), 3, _LIKE)
    )


def _of_the_client(name: str, supported: Mapping[str, str]) -> Sequence[str]:
    """A property of the Kafka client, under no prefix or under that of Spark's connector."""
    bare = name.removeprefix("kafka.")
    if bare != name or PREFIX + bare in supported or bare in _OF_CLIENTS:
        return [PREFIX + bare]
    return [PREFIX + bare] if bare.startswith(_PREFIXES_OF_CLIENTS) else []


def _of_its_side(name: str, supported: Mapping[str, str]) -> Mapping[str, str]:
    """The names that can be meant by one of the key or of the value."""
    side = name.partition(".")[0] + "."
    return {each: name for each, name in supported.items() if each.startswith(side)} or supported


def _in_a_family(name: str) -> Sequence[str]:
    """A name behind a misspelt prefix, or a prefix alone."""
    for prefix, family in _FAMILIES.items():
        parts = name.split(".", prefix.count("."))
        rest = parts[prefix.count(".") :]
        begin = ".".join(parts[: prefix.count(".")]) + "."
        if get_close_matches(begin, [prefix], cutoff=_LIKE_A_PREFIX):
            return [f"{prefix}{rest[0]}" if any(rest) else family.name]
    return []


def _nearest(name: str, supported: Mapping[str, str], most: int, likeness: float) -> Sequence[str]:
    return [supported[found] for found in get_close_matches(name, supported, most, likeness)]

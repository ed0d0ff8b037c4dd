"""The names of the options that were given: which are unknown or missing, and what may be meant instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import OPTIONS, SPARKS_OWN
from pyspark_upsert_kafka.core.options.internal import INTERNAL
from pyspark_upsert_kafka.core.options.option import Option, OptionFamily, where
from pyspark_upsert_kafka.core.options.properties import PREFIX, SPELLINGS

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


def option_values(
    given: Mapping[str, str], formats: FormatOptions, *, keyed: bool
) -> dict[str, Any]:
    """The value of every declared option, given or default, by its name as declared.

    Raises:
        OptionError: An option is unknown, missing or malformed.
    """
    check_known(given, formats)
    check_required(given, keyed=keyed)
    return {name: option.read(given) for name, option in OPTIONS.items()}


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
            + ".\n\nSupported options, which docs/options.md explains: "
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

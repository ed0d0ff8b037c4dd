"""Which option can be meant by a name that is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from pyspark_upsert_kafka.core.properties import PREFIX, SPELLINGS

_NEAR, _LIKE, _LIKE_A_PREFIX = 0.9, 0.6, 0.75
"""How much alike names are: a letter is wrong; a word is; what stands before a name free to choose."""

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
    "groupidprefix": "no group is joined",
    "startingoffsetsbytimestampstrategy": "a start behind the last message is the end",
    "fetchoffset.retryintervalms": "attempts are 0.1 to 1 second apart",
    "maxrecordsperpartition": "'minPartitions' splits partitions",
}
"""Names from Spark's ``kafka`` connector without a name here, and what takes their place."""

_FAMILIES = {"properties": "<name>", "metadata": "<column>"}
"""The prefixes behind which a name is free to choose, and what it is."""

_OF_CLIENTS = {*SPELLINGS, *SPELLINGS.values()}
_PREFIXES_OF_CLIENTS = ("sasl.", "ssl.", "security.")


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
    prefix, _, rest = name.partition(".")
    families = get_close_matches(prefix, _FAMILIES, n=1, cutoff=_LIKE_A_PREFIX)
    return [f"{family}.{rest or _FAMILIES[family]}" for family in families]


def _nearest(name: str, supported: Mapping[str, str], most: int, likeness: float) -> Sequence[str]:
    return [supported[found] for found in get_close_matches(name, supported, most, likeness)]

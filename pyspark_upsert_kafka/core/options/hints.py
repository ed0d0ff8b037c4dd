"""Which option can be meant by a name that is none."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from pyspark_upsert_kafka.core.properties import PREFIX

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
}
"""Names from Spark's and Flink's ``kafka`` connectors, and what means the same here; None = nothing."""


def hint(name: str, supported: Mapping[str, str]) -> str:
    """The name that can be meant, as the end of a line; empty when there is none.

    Args:
        name: The name that was given, in lower case.
        supported: Names as declared, by their lower case.

    >>> hint("subscribe", {"topic": "topic"}), hint("header", {"topic": "topic"})
    (" (Did you mean 'topic'?)", '')
    """
    meant = _meant(name, supported)
    return f" (Did you mean '{meant}'?)" if meant else ""


def _meant(name: str, supported: Mapping[str, str]) -> str | None:
    if name in _RENAMED:
        return _RENAMED[name]
    if near := _nearest(name, supported, 0.9):
        return near
    bare = name.removeprefix("kafka.")
    if bare != name or PREFIX + bare in supported:
        return PREFIX + bare
    return _nearest(name, supported, 0.6)


def _nearest(name: str, supported: Mapping[str, str], likeness: float) -> str | None:
    found = get_close_matches(name, supported, n=1, cutoff=likeness)
    return supported[found[0]] if found else None

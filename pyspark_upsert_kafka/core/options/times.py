"""``scan.startup.timestamp`` and ``scan.bounded.timestamp``: times as people write them, or how long ago they were."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.iso_time import epoch_ms, shown_time
from pyspark_upsert_kafka.core.options.parsers import duration

TIME_COMPLAINT = (
    "Invalid value for option '{name}': {expected}. A time is in ISO 8601 with a zone, as in '2026-01-31T12:00:00Z', or says "
    "how long ago it was, as in '-10 min'; milliseconds since the epoch go into '{name}-millis'."
)

_INSTEAD = {
    "startup": "To read only what is written from now on, use 'scan.startup.mode' = 'latest-offset'.",
    "bounded": "To read up to now, use 'scan.bounded.mode' = 'latest-offset'.",
}


@dataclass(frozen=True)
class Time:
    """A time that an option says.

    Args:
        ms: In ms since the epoch; of a time that is said by how long ago it was, so many ms before now.
        is_ago: Whether it is said so.
    """

    ms: int
    is_ago: bool = False

    def at(self, now_ms: int) -> int:
        """The time in ms since the epoch, from 1970 on."""
        return max(0, now_ms - self.ms) if self.is_ago else self.ms


def time_or_ago(value: str) -> Time:
    """A time with a zone, or how long ago it was.

    >>> time_or_ago("1970-01-01T00:00:01Z"), time_or_ago("-10 min")
    (Time(ms=1000, is_ago=False), Time(ms=600000, is_ago=True))
    """
    text = value.strip()
    length = re.fullmatch(r"([+-]?)\s*([0-9]+\s*([a-zµ]*))", text, re.IGNORECASE)
    if length is None or not (length[1] or length[3]):
        return Time(epoch_ms(text))
    if not length[3]:
        raise ValueError(f"{text!r} has no unit, such as 'min'")
    try:
        ago_s = duration(length[2])
    except ValueError as error:
        raise ValueError(f"{error}, but is {text!r}") from None
    if length[1] != "-":
        raise ValueError(f"{text!r} is in the future: {length[2]} ago is '-{length[2]}'")
    return Time(round(ago_s * 1000), is_ago=True)


def with_times(
    given: Mapping[str, str], values: Mapping[str, Any], planned_ms: int
) -> dict[str, Any]:
    """The values of all options, in which each time is one of ``scan.<...>.timestamp-millis``, with its mode.

    Args:
        given: The options that were given, names in lower case.
        values: The value of each option.
        planned_ms: The time now, in ms since the epoch, from which is counted how long ago a time was.

    Raises:
        OptionError: A time is in the future, or contradicts another option.
    """
    found = dict(values)
    for which in _INSTEAD:
        if values[f"scan.{which}.timestamp"] is not None:
            found |= _as_millis(which, given, values, planned_ms)
    return found


def _as_millis(
    which: str, given: Mapping[str, str], values: Mapping[str, Any], planned_ms: int
) -> dict[str, Any]:
    name, mode = f"scan.{which}.timestamp", f"scan.{which}.mode"
    if mode in given and values[mode] != "timestamp":
        raise OptionError(
            f"'{name}' is for '{mode}' = 'timestamp' only, but that is '{values[mode]}'."
        )
    if values[f"{name}-millis"] is not None:
        raise OptionError(f"'{name}' and '{name}-millis' both say a time: remove one of them.")
    at_ms = values[name].at(planned_ms)
    if at_ms > planned_ms:
        raise OptionError(
            f"'{name}' = '{given[name]}' is in the future: it is {shown_time(planned_ms)} now. {_INSTEAD[which]}"
        )
    return {mode: "timestamp", f"{name}-millis": at_ms}

"""What an option is: one declaration from which checks, defaults and docs/options.md follow."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError

Parser = Callable[[str], Any]


@dataclass(frozen=True)
class Option:
    """One declared option.

    Args:
        name: Its full name, or for an option of a format the part after ``value.<format>.``.
        parse: Text to value; raises ValueError with what was expected.
        default: Value when it is not given; None = not set.
        help: One line for docs/options.md.
        shown_default: How the documentation writes the default, when not as ``default``.
    """

    name: str
    parse: Parser
    default: Any
    help: str
    shown_default: str | None = None

    def read(self, given: Mapping[str, str], prefix: str = "") -> Any:
        """The value among the ``given`` options (names in lower case), or the default.

        Raises:
            OptionError: The text is not a value of this option.
        """
        name = prefix + self.name
        text = given.get(name.lower())
        if text is None:
            return self.default
        try:
            return self.parse(text)
        except ValueError as error:
            raise OptionError(
                f"Invalid value for option '{name}': {error}, but is {text!r}."
            ) from None


def text(value: str) -> str:
    """Any text but the empty one."""
    if not value:
        raise ValueError("expected a value")
    return value


def any_text(value: str) -> str:
    """Any text, the empty one too."""
    return value


def boolean(value: str) -> bool:
    """``true`` or ``false``, in any case."""
    lowered = value.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("expected 'true' or 'false'")
    return lowered == "true"


def whole_number(minimum: int = 0) -> Parser:
    """A whole number of at least ``minimum``."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"\s*-?\d{1,19}\s*", value) or int(value) < minimum:
            raise ValueError(f"expected a whole number of at least {minimum}")
        return int(value)

    return parse


def one_of(*allowed: str) -> Parser:
    """One of the given words, in any case; the declared spelling is the value."""
    by_lower = {word.lower(): word for word in allowed}

    def parse(value: str) -> str:
        found = by_lower.get(value.strip().lower())
        if found is None:
            raise ValueError("expected one of " + ", ".join(f"'{word}'" for word in allowed))
        return found

    return parse


_UNITS = {
    "ns": 1e-9, "nano": 1e-9, "nanosecond": 1e-9,
    "us": 1e-6, "µs": 1e-6, "micro": 1e-6, "microsecond": 1e-6,
    "ms": 1e-3, "milli": 1e-3, "millisecond": 1e-3, "": 1e-3,
    "s": 1.0, "sec": 1.0, "second": 1.0,
    "m": 60.0, "min": 60.0, "minute": 60.0,
    "h": 3600.0, "hour": 3600.0,
    "d": 86400.0, "day": 86400.0,
}  # fmt: skip


def duration(value: str) -> float:
    """A duration as Flink writes one (``5 min``, ``10s``, a bare number = ms), in seconds.

    The units are those of Flink's ``org.apache.flink.util.TimeUtils``.

    >>> duration("5 min"), duration("250ms"), duration("1500")
    (300.0, 0.25, 1.5)
    """
    match = re.fullmatch(r"\s*(\d+)\s*([a-zµ]*)\s*", value.lower())
    if match:
        number, unit = int(match[1]), match[2]
        for label in (unit, unit.removesuffix("s")):
            if label in _UNITS and (label or not unit):
                return number * _UNITS[label]
    raise ValueError("expected a duration such as '5 min', '10s' or '500 ms'")

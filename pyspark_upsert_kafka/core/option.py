"""What an option is: one declaration from which checks, defaults and docs/options.md follow."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.secrecy import is_secret, resolve

Parser = Callable[[str], Any]

_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Option:
    """One declared option.

    Args:
        name: Its full name, or for an option of a format the part after ``value.<format>.``.
        parse: Text to value; raises ValueError with what was expected.
        default: Value when it is not given; None = not set.
        help: One line for docs/options.md.
        shown_default: How the documentation writes the default, when not as ``default``.
        complaint: What is said of a text that is not a value of this option.
    """

    name: str
    parse: Parser
    default: Any
    help: str
    shown_default: str | None = None
    complaint: str = "Invalid value for option '{name}': {expected}, but is {seen}."

    def read(self, given: Mapping[str, str], prefix: str = "") -> Any:
        """The value among the ``given`` options (names in lower case), or the default.

        A reference is replaced here, but for a secret, which stays one until it is used.

        Raises:
            OptionError: The text is not a value of this option, or refers to nothing.
        """
        name = prefix + self.name
        given_text = given.get(name.lower())
        if given_text is None:
            return self.default
        secret = is_secret(name)
        resolved = given_text if secret else resolve(name, given_text)
        try:
            return self.parse(resolved)
        except ValueError as error:
            if secret:
                raise OptionError(
                    f"Invalid value for option '{name}'; it is not shown here, since it may be "
                    f"secret. The option says: {self.help}"
                ) from None
            raise OptionError(
                self.complaint.format(name=name, expected=error, seen=repr(given_text))
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
    """A whole number of at least ``minimum`` that fits into 64 bits."""

    def parse(value: str) -> int:
        if re.fullmatch(r"\s*-?[0-9]{1,19}\s*", value) and minimum <= int(value) <= _LARGEST:
            return int(value)
        raise ValueError(f"expected a whole number of at least {minimum}")

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
    label: seconds
    for labels, seconds in (
        ("ns nano nanos nanosecond nanoseconds", 1e-9),
        ("us µs micro micros microsecond microseconds", 1e-6),
        ("ms milli millis millisecond milliseconds", 1e-3),
        ("s sec secs second seconds", 1.0),
        ("m min minute minutes", 60.0),
        ("h hour hours", 3600.0),
        ("d day days", 86400.0),
    )
    for label in labels.split()
}
"""Those of Flink's ``org.apache.flink.util.TimeUtils``, and ``us``, which Spark knows."""


def duration(value: str) -> float:
    """A duration as Flink writes one (``5 min``, ``10s``, a bare number = ms), in seconds.

    >>> duration("5 min"), duration("250ms"), duration("1500")
    (300.0, 0.25, 1.5)
    """
    match = re.fullmatch(r"\s*([0-9]{1,18})\s*([a-zµ]*)\s*", value.lower())
    unit = _UNITS.get(match[2] or "ms") if match else None
    if match is None or unit is None:
        raise ValueError("expected a duration such as '5 min', '10s' or '500 ms'")
    return int(match[1]) * unit

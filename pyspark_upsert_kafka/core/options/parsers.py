"""Parsers of options: from text to a value; each raises ValueError with what it expected."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from pyspark_upsert_kafka.core.clock import epoch_ms

Parser = Callable[[str], Any]

_LARGEST = 2**63 - 1

_LONGEST_DAYS = 36_500


_OFFSETS_FORM = "should follow the format 'partition:0,offset:42;partition:1,offset:300'"

OFFSETS_COMPLAINT = "Invalid properties '{name}' {expected}, but is {seen}."
"""The wording of Flink's ``KafkaConnectorOptionsUtil``."""


def text(value: str) -> str:
    """Any text but the empty one."""
    if not value:
        raise ValueError("expected a value")
    return value


def addresses(value: str) -> str:
    """Addresses of brokers, which are no web pages."""
    if "http://" in value.lower() or "https://" in value.lower():
        raise ValueError("expected addresses without 'http', as in 'host:9092,host2:9092'")
    if "${" not in value:  # what a reference stands for is not known yet
        for address in value.split(","):
            _address(address.strip())
    return text(value)


def _address(value: str) -> None:
    """Refuses what a client would take as a host of another name, or as another port."""
    if re.search(r"[;\s]", value):
        raise ValueError("expected addresses separated by ',', as in 'host:9092,host2:9092'")
    _, colon, port = value.rpartition(":")
    if colon and "]" not in port and not _is_port(port):
        raise ValueError(f"expected a port from 1 to 65535 after '{value[: -len(port) or None]}'")


def _is_port(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,5}", text) is not None and 0 < int(text) < 65536


def http_parts(address: str) -> SplitResult | None:
    """The parts of an address of HTTP or HTTPS; None = it is none, has no host, or a port that cannot be.

    What `urlsplit` says of such a text would show a password in it.

    >>> http_parts("https://registry:8081/a").hostname, http_parts("registry:8081"), http_parts("http://registry:0")
    ('registry', None, None)
    """
    try:
        parts = urlsplit(address)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if sound else None


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


def whole_number_or_auto(minimum: int) -> Parser:
    """A whole number, as `whole_number` reads it, or ``auto``."""
    number = whole_number(minimum)

    def parse(value: str) -> int | Literal["auto"]:
        try:
            return "auto" if value.strip().lower() == "auto" else int(number(value))
        except ValueError as error:
            raise ValueError(f"{error}, or 'auto'") from None

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

_SHORT_UNITS = "(units: ns, us, ms, s, min, h, d)"


def duration(value: str) -> float:
    """A duration as Flink writes one (``5 min``, ``10s``, a bare number = ms), in seconds.

    >>> duration("5 min"), duration("250ms"), duration("1500")
    (300.0, 0.25, 1.5)
    """
    seconds = _amount(value, _UNITS, "ms")
    if seconds is None:
        raise ValueError(f"expected a duration such as '5 min', '10s' or '500 ms' {_SHORT_UNITS}")
    return seconds


def _amount(value: str, units: Mapping[str, float], default: str) -> float | None:
    """A whole number and its unit, as one amount; None = the text is no such thing."""
    match = re.fullmatch(r"\s*([0-9]{1,18})\s*([a-zµ]*)\s*", value.lower())
    unit = units.get(match[2] or default) if match else None
    return None if match is None or unit is None else int(match[1]) * unit


def positive_duration(value: str) -> float:
    """A duration of a millisecond at least and a hundred years at most, in seconds: timestamps are 64 bits of ms."""
    seconds = duration(value)
    if seconds < 0.001:
        raise ValueError("expected a duration of at least '1 ms', such as '5 min'")
    if seconds > _LONGEST_DAYS * 86_400:
        raise ValueError(f"expected a duration of at most '{_LONGEST_DAYS} d', such as '5 min'")
    return seconds


_MEMORY_UNITS: dict[str, int] = {
    label: 2 ** (10 * power)
    for power, labels in enumerate(
        ("b bytes", "k kb kibibytes", "m mb mebibytes", "g gb gibibytes", "t tb tebibytes")
    )
    for label in labels.split()
}
"""Those of Flink's ``org.apache.flink.configuration.MemorySize``."""


def memory_size(value: str) -> int:
    """An amount of memory as Flink writes one (``512 mb``, ``1g``, a bare number = bytes), in bytes.

    >>> memory_size("512 mb"), memory_size("1024")
    (536870912, 1024)
    """
    size = _amount(value, _MEMORY_UNITS, "b")
    if not size:
        raise ValueError("expected an amount of memory such as '512 mb' or '1g'")
    return int(size)


def memory_or_auto(value: str) -> int | None:
    """An amount of memory, as `memory_size` reads it; ``auto`` = None."""
    try:
        return None if value.strip().lower() == "auto" else memory_size(value)
    except ValueError as error:
        raise ValueError(f"{error}, or 'auto'") from None


def regular_expression(value: str) -> re.Pattern[str]:
    """A regular expression over whole topic names."""
    try:
        return re.compile(value)
    except re.error as error:
        raise ValueError(f"expected a regular expression ({error})") from None


def specific_offsets(value: str) -> tuple[tuple[int, int], ...]:
    """``partition:0,offset:42;partition:1,offset:300`` as pairs, sorted by partition."""
    pairs: dict[int, int] = {}
    for part in value.strip().removesuffix(";").split(";"):
        match = re.fullmatch(r"\s*partition:([0-9]{1,9}),offset:([0-9]{1,18})\s*", part)
        if not match or int(match[1]) in pairs:
            raise ValueError(_OFFSETS_FORM)
        pairs[int(match[1])] = int(match[2])
    return tuple(sorted(pairs.items()))


def topic_name(value: str) -> str:
    """A name that Kafka takes for a topic."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", value) or value in (".", ".."):
        raise ValueError(
            "expected a topic's name, of at most 249 letters, digits, '.', '_' and '-'"
        )
    return value


def topic_list(value: str) -> tuple[str, ...]:
    """One topic, or several separated by ``;``, each once."""
    if "," in value:
        raise ValueError("expected topics separated by ';'")
    names = (part.strip() for part in value.split(";") if part.strip())
    return tuple(dict.fromkeys(topic_name(name) for name in names))


def json_topic_list(value: str) -> tuple[str, ...]:
    """What Spark makes of ``load(["a", "b"])``."""
    names = json.loads(value)
    if not isinstance(names, list):
        raise ValueError("expected a JSON list")  # noqa: TRY004 - what is wrong is the text
    return topic_list(";".join(map(str, names)))


def id_prefix(value: str) -> str:
    """What names of transactions and groups begin with: librdkafka takes visible ASCII characters only."""
    if not re.fullmatch(r"[!-~]{1,200}", value):
        raise ValueError("expected at most 200 visible ASCII characters, without blanks")
    return value


def column_list(separator: str) -> Parser:
    """Names of columns, each once; the case of letters makes no difference."""

    def parse(value: str) -> tuple[str, ...]:
        names = tuple(part.strip() for part in value.split(separator) if part.strip())
        if len({name.lower() for name in names}) < len(names):
            raise ValueError("expected each column once")
        return names

    return parse


def names_as_written(value: str) -> dict[str, str]:
    """Names of options as they were written, by their lower case, as a JSON object."""
    names = json.loads(value)
    if not isinstance(names, dict) or any(
        not isinstance(written, str) or written.lower() != name for name, written in names.items()
    ):
        raise ValueError("expected names by their lower case")
    return names


WantedHeaders = tuple[tuple[str, bytes], ...]
"""Names of headers and the value of each, which a message must all have."""

_FORM = "expected a name and a value for each header, such as 'type=Order;tenant=7'"


def header_values(value: str) -> WantedHeaders:
    """Headers with their values, in UTF-8; blanks around both do not count.

    >>> header_values("type=Order; tenant=7")
    (('tenant', b'7'), ('type', b'Order'))
    """
    wanted: dict[str, bytes] = {}
    for part in filter(str.strip, value.split(";")):
        name, _, text = (each.strip() for each in part.partition("="))
        if not name or not text:
            raise ValueError(f"{_FORM} ({part.strip()!r} is none)")
        if name in wanted:
            raise ValueError(f"expected header {name!r} once, since a message must have all values")
        wanted[name] = text.encode()
    if not wanted:
        raise ValueError(_FORM)
    return tuple(sorted(wanted.items()))


def record_names(value: str) -> tuple[str, ...]:
    """Names of record types, separated by ``;``; blanks around them do not count.

    >>> record_names("com.acme.Order; Refund")
    ('com.acme.Order', 'Refund')
    """
    names = tuple(dict.fromkeys(filter(None, map(str.strip, value.split(";")))))
    if not names:
        raise ValueError("expected names of record types, such as 'com.acme.Order;com.acme.Refund'")
    return names


TIME_COMPLAINT = (
    "Invalid value for option '{name}': {expected}. A time is in ISO 8601 with a zone, as in '2026-01-31T12:00:00Z', or says "
    "how long ago it was, as in '-10 min'; milliseconds since the epoch go into '{name}-millis'."
)


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
    ago_s = _amount(length[2], _UNITS, "ms")
    if ago_s is None:
        raise ValueError(
            f"expected how long ago it was, such as '-10 min' or '-1 d' {_SHORT_UNITS}, but is {text!r}"
        )
    if length[1] != "-":
        raise ValueError(f"{text!r} is in the future: {length[2]} ago is '-{length[2]}'")
    return Time(round(ago_s * 1000), is_ago=True)

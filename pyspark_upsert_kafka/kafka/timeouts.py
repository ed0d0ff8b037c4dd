"""How long a broker may take to answer, by the names and defaults of the Java client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.properties import PREFIX
from pyspark_upsert_kafka.kafka import patience

_REQUEST = "request.timeout.ms"
_API = "default.api.timeout.ms"
_REQUEST_MS, _API_MS = 30_000, 60_000


@dataclass(frozen=True)
class Timeouts:
    """How long the answer to a question is waited for.

    Args:
        request_s: In one attempt.
        api_s: In all attempts together.
    """

    request_s: float
    api_s: float


def timeouts(properties: Mapping[str, str]) -> Timeouts:
    """The timeouts that the properties state, or those of the Java client.

    As in Java, a request timeout longer than all attempts is an error when both are given, and
    extends them when it stands alone.

    Raises:
        OptionError: A timeout is no positive whole number, or one attempt is longer than all.
    """
    request_ms = _milliseconds(properties, _REQUEST, _REQUEST_MS)
    api_ms = _milliseconds(properties, _API, max(_API_MS, request_ms))
    if api_ms < request_ms:
        by_default = "" if _REQUEST in properties else " (its default)"
        raise OptionError(
            f"Option '{PREFIX}{_API}' = '{api_ms}' is the time for all attempts and must not be less "
            f"than '{PREFIX}{_REQUEST}' = '{request_ms}'{by_default}, the time for one: raise the first, "
            "or lower the second."
        )
    return Timeouts(request_ms / 1000, api_ms / 1000)


def message_timeout_s(properties: Mapping[str, str]) -> float:
    """How long the next message of a range is waited for: as long as for an answer, where that is given."""
    return timeouts(properties).api_s if _API in properties else patience.MESSAGE_S


def _milliseconds(properties: Mapping[str, str], name: str, default: int) -> int:
    value = properties.get(name, str(default)).strip()
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        raise OptionError(
            f"Invalid value for option '{PREFIX}{name}': expected a positive number of milliseconds, "
            f"but is {value!r}."
        )
    return int(value)

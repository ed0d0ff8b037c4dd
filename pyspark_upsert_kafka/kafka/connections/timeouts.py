"""How long a broker may take to answer, by the names and defaults of the Java client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import PREFIX

REQUEST_TIMEOUT_S, API_TIMEOUT_S = 30.0, 60.0
"""For one attempt of a request and for all of them: the Java client's defaults."""

POLL_TIMEOUT_S = 120.0
"""For the next message of a range (the default of Spark's ``kafkaConsumer.pollTimeoutMs``)."""

DELIVERY_CHECK_S = 1.0
"""After so long without a delivery report it is checked whether the client has a fatal error."""

CLOSE_TIMEOUT_S = 5.0
"""For what is still under way when a client is closed."""

_REQUEST = "request.timeout.ms"
_API = "default.api.timeout.ms"


@dataclass(frozen=True)
class Timeouts:
    """How long the answer to a request is waited for.

    Args:
        request_s: In one attempt.
        api_s: In all attempts together.
    """

    request_s: float
    api_s: float

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Timeouts:
        """The timeouts that the properties state, or those of the Java client.

        As in Java, a request timeout longer than all attempts is an error when both are given, and
        extends them when only it is given.

        Raises:
            OptionError: A timeout is no positive whole number, or one attempt is longer than all.
        """
        request_s = _seconds(properties, _REQUEST, REQUEST_TIMEOUT_S)
        api_s = _seconds(properties, _API, max(API_TIMEOUT_S, request_s))
        if api_s < request_s:
            by_default = "" if _REQUEST in properties else " (its default)"
            raise OptionError(
                f"Option '{PREFIX}{_API}' = '{api_s * 1000:.0f}' is the time for all attempts and must "
                f"not be less than '{PREFIX}{_REQUEST}' = '{request_s * 1000:.0f}'{by_default}, the time "
                "for one: raise the first, or lower the second."
            )
        return cls(request_s, api_s)


@dataclass(frozen=True)
class ReadWaits:
    """How long is waited while a range is read.

    Args:
        message_s: For the next message.
        outage_s: For brokers that are all away; 0 = no longer than for any answer.
    """

    message_s: float
    outage_s: float = 0.0


def message_timeout_s(properties: Mapping[str, str]) -> float:
    """How long the next message of a range is waited for: as long as for an answer, where that is given."""
    return Timeouts.from_properties(properties).api_s if _API in properties else POLL_TIMEOUT_S


def _seconds(properties: Mapping[str, str], name: str, default_s: float) -> float:
    value = properties.get(name)
    if value is None:
        return default_s
    stripped = value.strip()
    if not (stripped.isascii() and stripped.isdigit() and int(stripped) > 0):
        raise OptionError(
            f"Invalid value for option '{PREFIX}{name}': expected a positive number of milliseconds, "
            f"but is {stripped!r}."
        )
    return int(stripped) / 1000

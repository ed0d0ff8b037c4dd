"""``sink.delivery-guarantee``, and the acks and the idempotence that it needs of a producer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from pyspark_upsert_kafka.core.errors import OptionError

T = TypeVar("T")

_ACKS = {"all": "all", "-1": "all", "1": "1", "0": "0"}

_BOOLEANS = {"true": True, "false": False}


class DeliveryGuarantee(Enum):
    """The values of ``sink.delivery-guarantee``."""

    NONE = "none"
    """Messages may be lost: ``acks`` is 0 unless ``properties.acks`` says otherwise."""
    AT_LEAST_ONCE = "at-least-once"
    """Each message is confirmed; one may be written more than once."""
    EXACTLY_ONCE = "exactly-once"
    """Each message is in a transaction that is committed once; `upsert_sink` only."""

    @property
    def needs_confirmation(self) -> bool:
        """Whether the brokers must confirm each message."""
        return self is not DeliveryGuarantee.NONE


@dataclass(frozen=True)
class RequiredAcks:
    """What a producer asks of the brokers.

    Args:
        acks: ``all``, ``1`` or ``0``.
        idempotent: Whether a message that is sent again is written once.
    """

    acks: str
    idempotent: bool


def required_acks(properties: Mapping[str, str], guarantee: DeliveryGuarantee) -> RequiredAcks:
    """What to ask of the brokers.

    Args:
        properties: The producer's properties, references replaced or left out.
        guarantee: What the sink promises.

    Raises:
        OptionError: A value is malformed, or contradicts another or the guarantee.

    >>> required_acks({}, DeliveryGuarantee.AT_LEAST_ONCE)
    RequiredAcks(acks='all', idempotent=True)
    >>> required_acks({"acks": "1"}, DeliveryGuarantee.AT_LEAST_ONCE)
    RequiredAcks(acks='1', idempotent=False)
    >>> required_acks({}, DeliveryGuarantee.NONE)
    RequiredAcks(acks='0', idempotent=False)
    """
    acks = _value(properties, "acks", _ACKS, "'all', '1' or '0'")
    idempotent = _value(properties, "enable.idempotence", _BOOLEANS, "'true' or 'false'")
    if acks == "0" and guarantee.needs_confirmation:
        raise OptionError(
            "Option 'properties.acks' = '0' (also spelt 'properties.request.required.acks') means that "
            "no message is confirmed: leave it out, or set 'sink.delivery-guarantee' to 'none'."
        )
    if guarantee is DeliveryGuarantee.EXACTLY_ONCE and (acks == "1" or idempotent is False):
        raise OptionError(
            "'sink.delivery-guarantee' = 'exactly-once' needs 'properties.acks' = 'all' and "
            "'properties.enable.idempotence' = 'true', their defaults here: leave both out."
        )
    if idempotent and acks not in (None, "all"):
        raise OptionError(
            f"Option 'properties.enable.idempotence' = 'true' needs 'properties.acks' = 'all', which is "
            f"'{acks}': leave one of the two out."
        )
    if acks is None:
        acks = "all" if guarantee.needs_confirmation or idempotent else "0"
    # As in the Java client since Kafka 3.0: fewer acks than all turn idempotence off unless asked for.
    return RequiredAcks(acks, acks == "all" if idempotent is None else idempotent)


def weak_acks(required: RequiredAcks, topics: str) -> list[str]:
    """The warning about ``acks`` = 1; none for other values.

    >>> weak_acks(RequiredAcks("all", True), "t")
    []
    """
    if required.acks != "1":
        return []
    text = (
        f"Option 'properties.acks' = '1' for topic {topics}: a message counts as delivered when one broker "
        "has it, and is lost if that broker fails before another one has copied it. 'all', the default, waits for "
        "all replicas that are in sync."
    )
    return [text]


def _value(
    properties: Mapping[str, str], name: str, known: Mapping[str, T], expected: str
) -> T | None:
    given = properties.get(name)
    if given is None:
        return None
    value = known.get(given.strip().lower())
    if value is None:
        raise OptionError(
            f"Invalid value for option 'properties.{name}': expected {expected}, but is {given!r}."
        )
    return value

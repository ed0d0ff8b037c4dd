"""What a sink promises about the messages of a task."""

from __future__ import annotations

from enum import Enum


class DeliveryGuarantee(Enum):
    """The values of ``sink.delivery-guarantee``."""

    NONE = "none"
    """A message may be lost: ``acks`` is 0 unless ``properties.acks`` says otherwise."""
    AT_LEAST_ONCE = "at-least-once"
    """Each message is confirmed; one may be written more than once."""
    EXACTLY_ONCE = "exactly-once"
    """Each message is in a transaction that is committed once; `upsert_sink` only."""

    @property
    def needs_confirmation(self) -> bool:
        """Whether the brokers must confirm each message."""
        return self is not DeliveryGuarantee.NONE

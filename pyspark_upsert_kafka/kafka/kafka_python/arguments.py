"""kafka-python's arguments, and the values of properties in the types of these arguments."""

from __future__ import annotations

from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.core.secrets.masking import is_secret

DEFAULTS: dict[str, Any] = {
    **KafkaAdminClient.DEFAULT_CONFIG,
    **KafkaConsumer.DEFAULT_CONFIG,
    **KafkaProducer.DEFAULT_CONFIG,
    # Not arguments of every version, but the adapter understands them.
    "allow_auto_create_topics": False,
    "buffer_memory": 0,
    "delivery_timeout_ms": 0,
    "enable_idempotence": True,
    "isolation_level": "",
}
"""All arguments of the clients and their defaults, which tell their types."""

_NUMBERS = frozenset({"receive_buffer_bytes", "send_buffer_bytes"})
"""Numbers that have no default."""


def has_plain_value(argument: str) -> bool:
    """Whether an argument takes a flag, a number or a text, as an option can say it."""
    default = DEFAULTS[argument]
    if default is None:
        return not argument.endswith(("serializer", "_context", "_provider", "_kerberos_name"))
    return isinstance(default, (bool, int, float, str))


def typed_value(name: str, argument: str, value: str) -> Any:
    """The value of a property in the type of the argument's default.

    Raises:
        OptionError: It cannot be.
    """
    default = DEFAULTS[argument]
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[value.strip().lower()]
        if isinstance(default, (int, float)) or argument in _NUMBERS:
            return int(value)
    except (KeyError, ValueError):
        expected = "'true' or 'false'" if isinstance(default, bool) else "a whole number"
        seen = "***" if is_secret(name) else repr(value)
        raise OptionError(
            f"Invalid value for option '{PREFIX}{name}': expected {expected}, but is {seen}."
        ) from None
    return value

"""Properties whose values kafka-python's arguments express in another way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.properties import PREFIX
from pyspark_upsert_kafka.kafka.kafka_python.arguments import DEFAULTS, typed_value
from pyspark_upsert_kafka.kafka.kafka_python.java_names import ANY_REMEDY, REMEDIES

Translation = Callable[[str, Mapping[str, str]], dict[str, Any]]
"""Gives the arguments for a value, and for all properties that are given."""

QUEUED_MESSAGES = "queued_messages"
"""How many messages wait at most for their confirmation: the adapter's own argument."""


def no_equivalent(name: str) -> OptionError:
    """The error for a security setting that kafka-python does not have."""
    return OptionError(
        f"Option '{PREFIX}{name}' has no equivalent in the client 'kafka-python': "
        f"{REMEDIES.get(name, ANY_REMEDY)}."
    )


def _followed_by_adapter(_: str, __: Mapping[str, str]) -> dict[str, Any]:
    """Of a property that the adapter itself follows."""
    return {}


def _acks(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    if value in ("all", "-1"):
        return {"acks": "all"}
    if value not in ("0", "1"):
        raise OptionError(
            f"Invalid value for option '{PREFIX}acks': expected 'all', '1' or '0', but is {value!r}."
        )
    return {"acks": int(value)}


def _compression(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    return {"compression_type": None if value == "none" else value}


def _protocol(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    return {"security_protocol": value.upper()}


def _queued_messages(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    return {QUEUED_MESSAGES: typed_value("queue.buffering.max.messages", "buffer_memory", value)}


def _queued_kbytes(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    kbytes = typed_value("queue.buffering.max.kbytes", "buffer_memory", value)
    return {"buffer_memory": kbytes * 1024}


def _retries(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    count = typed_value("retries", "retries", value)
    return {
        "retries": math.inf if count >= 2**31 - 1 and math.isinf(DEFAULTS["retries"]) else count
    }


TRANSLATIONS: dict[str, Translation] = {
    "acks": _acks,
    "compression.codec": _compression,
    "compression.type": _compression,
    "default.api.timeout.ms": _followed_by_adapter,
    "queue.buffering.max.kbytes": _queued_kbytes,
    "queue.buffering.max.messages": _queued_messages,
    "request.required.acks": _acks,
    "retries": _retries,
    "security.protocol": _protocol,
}
"""By the name of the property, as Java or librdkafka spells it."""

"""Properties whose values kafka-python's arguments express in another way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.properties import PREFIX
from pyspark_upsert_kafka.kafka import jaas
from pyspark_upsert_kafka.kafka.kafka_python.arguments import DEFAULTS, typed_value
from pyspark_upsert_kafka.kafka.kafka_python.java_names import ANY_REMEDY, REMEDIES

Translation = Callable[[str, Mapping[str, str]], dict[str, Any]]
"""Gives the arguments for a value, and for all properties that are given."""

QUEUED_MESSAGES = "queued_messages"
"""How many messages wait at most for their confirmation: the adapter's own argument."""


def no_equivalent(name: str) -> OptionError:
    """The error for a security setting that kafka-python does not have."""
    beginnings = [beginning for beginning in REMEDIES if name.startswith(beginning)]
    remedy = REMEDIES[max(beginnings, key=len)] if beginnings else ANY_REMEDY
    return OptionError(
        f"Option '{PREFIX}{name}' has no equivalent in the client 'kafka-python': {remedy}."
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


def _from_jaas(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    login = jaas.login(value)
    if not login.is_by_password:
        remedy = (
            "get a ticket with kinit, set 'properties.sasl.mechanism' to 'GSSAPI', and leave it out"
            if login.module == "Krb5LoginModule"
            else "set 'properties.sasl.username' and 'properties.sasl.password'"
        )
        raise OptionError(f"Option '{PREFIX}sasl.jaas.config' works in a JVM only: {remedy}.")
    given = login.given
    return {f"sasl_plain_{name}": given[name] for name in ("username", "password") if name in given}


def _mechanism(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    if value.upper() == "OAUTHBEARER":
        raise no_equivalent("sasl.oauthbearer.token.endpoint.url")
    return {"sasl_mechanism": value}


def _protocol(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    return {"security_protocol": value.upper()}


def _host_check(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    return {"ssl_check_hostname": value.lower() not in ("", "none")}


def _pem_store(store: str, argument: str) -> Translation:
    """Java's stores may be PEM files (KIP-651): the key store with key and chain in one file."""

    def translate(value: str, given: Mapping[str, str]) -> dict[str, Any]:
        if given.get(f"ssl.{store}.type", "").upper() != "PEM":
            raise no_equivalent(f"ssl.{store}.location")
        return {argument: value}

    return translate


def _store_type(store: str) -> Translation:
    def translate(value: str, _: Mapping[str, str]) -> dict[str, Any]:
        if value.upper() != "PEM":
            raise no_equivalent(f"ssl.{store}.type")
        return {}

    return translate


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
    "sasl.jaas.config": _from_jaas,
    "sasl.mechanism": _mechanism,
    "sasl.mechanisms": _mechanism,
    "security.protocol": _protocol,
    "ssl.endpoint.identification.algorithm": _host_check,
    "ssl.keystore.location": _pem_store("keystore", "ssl_certfile"),
    "ssl.keystore.type": _store_type("keystore"),
    "ssl.truststore.location": _pem_store("truststore", "ssl_cafile"),
    "ssl.truststore.type": _store_type("truststore"),
}
"""By the name of the property, as Java or librdkafka spells it."""

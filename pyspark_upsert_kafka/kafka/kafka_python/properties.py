"""Java client names -> kafka-python's arguments; what has no equivalent is refused or dropped."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaConfigurationError, KafkaError

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.properties import PREFIX, Properties
from pyspark_upsert_kafka.core.secrecy import is_secret
from pyspark_upsert_kafka.kafka import jaas
from pyspark_upsert_kafka.kafka.kafka_python.client_log import ClientId
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3
from pyspark_upsert_kafka.kafka.kafka_python.java_names import (
    ANY_REMEDY,
    OURS,
    REMEDIES,
    RENAMED,
    SECURITY,
)

logger = logging.getLogger("pyspark_upsert_kafka")

T = TypeVar("T")

_DEFAULTS: dict[str, Any] = {
    **KafkaAdminClient.DEFAULT_CONFIG,
    **KafkaConsumer.DEFAULT_CONFIG,
    **KafkaProducer.DEFAULT_CONFIG,
    # Not arguments of every version, and yet understood by the adapter.
    "allow_auto_create_topics": False,
    "buffer_memory": 0,
    "delivery_timeout_ms": 0,
    "enable_idempotence": True,
    "isolation_level": "",
}
_NUMBERS = frozenset({"receive_buffer_bytes", "send_buffer_bytes"})
"""Numbers that have no default."""

_FILES = frozenset({"ssl_cafile", "ssl_certfile", "ssl_crlfile", "ssl_keyfile"})

_dropped_before: set[str] = set()


def client_config(properties: Properties, role: str, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments for one role, by the names of kafka-python's clients.

    Args:
        properties: As the user gave them.
        role: ``reader``, ``writer`` or ``driver``: part of the client id.
        ours: What the connector sets for this role unless the user says otherwise.

    Raises:
        OptionError: A value is malformed, a security setting has no equivalent, or a reference is
            to nothing.
    """
    given = _translated(properties.resolved())
    _check_login(given)
    config = {"client_id": f"pyspark-upsert-kafka-{role}", **ours, **given}
    return {**config, "client_id": ClientId(config["client_id"])}


def _check_login(given: Mapping[str, Any]) -> None:
    by_name = str(given.get("sasl_mechanism", "")).startswith(("PLAIN", "SCRAM"))
    if by_name and not {"sasl_plain_username", "sasl_plain_password"} <= given.keys():
        raise OptionError(
            f"Option '{PREFIX}sasl.mechanism' = '{given['sasl_mechanism']}' needs "
            f"'{PREFIX}sasl.username' and '{PREFIX}sasl.password', or both in "
            f"'{PREFIX}sasl.jaas.config'."
        )


def opened(client: Callable[..., T], config: Mapping[str, Any]) -> T:
    """A client with those of the arguments that it has.

    Raises:
        OptionError: The client does not take a value.
        KafkaError: No broker answers.
    """
    for name in _FILES & config.keys():
        if not Path(config[name]).is_file():
            raise OptionError(
                f"An option '{PREFIX}ssl.*' names a file that is missing: {config[name]}."
            )
    known: Mapping[str, Any] = client.DEFAULT_CONFIG  # type: ignore[attr-defined]
    connections: list[Any] = []

    def connect(**arguments: Any) -> Any:
        connections.append(known["kafka_client"](**arguments))
        return connections[-1]

    taken = {name: value for name, value in config.items() if name in known}
    if "kafka_client" in known:
        taken["kafka_client"] = connect
    try:
        return client(**taken)
    except (AssertionError, KafkaError, OSError, RuntimeError, TypeError, ValueError) as error:
        for connection in connections:
            connection.close()  # its threads would go on trying for ever
        passes = isinstance(error, (KafkaError, OSError))
        if passes and not isinstance(error, KafkaConfigurationError):
            raise
        raise _not_taken(error, config) from None


def create_no_topics(metadata: Any) -> None:
    """Has a client's knowledge of the cluster be asked for without creating what is asked for."""
    if IS_KAFKA_PYTHON_3:
        # The client's argument of this name does not reach it (kafka-python 3.0).
        metadata.config["allow_auto_create_topics"] = False
    else:
        # Asked for one topic, a broker may create it; asked for all, it does not.
        metadata.need_all_topic_metadata = True


def _not_taken(error: Exception, config: Mapping[str, Any]) -> OptionError:
    text = str(error) or type(error).__name__
    for name, value in config.items():
        if value and is_secret(name.replace("_", ".")):
            text = text.replace(str(value), "***")
    return OptionError(f"The Kafka client does not take an option '{PREFIX}*': {text}.")


def _translated(given: Mapping[str, str]) -> dict[str, Any]:
    translated: dict[str, Any] = {}
    for name, value in given.items():
        argument = RENAMED.get(name, name.replace(".", "_"))
        if argument in OURS:
            continue
        if name in _SPECIAL:
            translated.update(_SPECIAL[name](value, given))
        elif argument in _DEFAULTS and _is_plain(argument):
            translated[argument] = _typed(name, argument, value)
        elif name.startswith(SECURITY):
            raise _not_here(name)
        else:
            _warn_once(name)
    return translated


def _is_plain(argument: str) -> bool:
    default = _DEFAULTS[argument]
    if default is None:
        return not argument.endswith(("serializer", "_context", "_provider", "_kerberos_name"))
    return isinstance(default, (bool, int, float, str))


def _typed(name: str, argument: str, value: str) -> Any:
    """A value as the type of the argument's default."""
    default = _DEFAULTS[argument]
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


def _not_here(name: str) -> OptionError:
    beginnings = [beginning for beginning in REMEDIES if name.startswith(beginning)]
    remedy = REMEDIES[max(beginnings, key=len)] if beginnings else ANY_REMEDY
    return OptionError(
        f"Option '{PREFIX}{name}' has no equivalent in the client 'kafka-python': {remedy}."
    )


def _taken_over(_: str, __: Mapping[str, str]) -> dict[str, Any]:
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
        raise _not_here("sasl.oauthbearer.token.endpoint.url")
    return {"sasl_mechanism": value}


def _protocol(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    return {"security_protocol": value.upper()}


def _host_check(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    return {"ssl_check_hostname": value.lower() not in ("", "none")}


def _pem_store(store: str, argument: str) -> Callable[[str, Mapping[str, str]], dict[str, Any]]:
    """Java's stores may be PEM files (KIP-651): the key store with key and chain in one file."""

    def translate(value: str, given: Mapping[str, str]) -> dict[str, Any]:
        if given.get(f"ssl.{store}.type", "").upper() != "PEM":
            raise _not_here(f"ssl.{store}.location")
        return {argument: value}

    return translate


def _store_type(store: str) -> Callable[[str, Mapping[str, str]], dict[str, Any]]:
    def translate(value: str, _: Mapping[str, str]) -> dict[str, Any]:
        if value.upper() != "PEM":
            raise _not_here(f"ssl.{store}.type")
        return {}

    return translate


def _queued_messages(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    return {QUEUED_MESSAGES: _typed("queue.buffering.max.messages", "buffer_memory", value)}


def _queued_kbytes(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    kbytes = _typed("queue.buffering.max.kbytes", "buffer_memory", value)
    return {"buffer_memory": kbytes * 1024}


def _retries(value: str, _: Mapping[str, str]) -> dict[str, Any]:
    count = _typed("retries", "retries", value)
    return {
        "retries": math.inf if count >= 2**31 - 1 and math.isinf(_DEFAULTS["retries"]) else count
    }


QUEUED_MESSAGES = "queued_messages"
"""How many messages wait at most for their confirmation: the adapter's own argument."""

_SPECIAL: dict[str, Callable[[str, Mapping[str, str]], dict[str, Any]]] = {
    "acks": _acks,
    "compression.codec": _compression,
    "compression.type": _compression,
    "default.api.timeout.ms": _taken_over,
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


def _warn_once(name: str) -> None:
    if name not in _dropped_before:
        _dropped_before.add(name)
        logger.warning(
            "Option '%s%s' has no equivalent in the client 'kafka-python'; it is ignored.",
            PREFIX, name,
        )  # fmt: skip

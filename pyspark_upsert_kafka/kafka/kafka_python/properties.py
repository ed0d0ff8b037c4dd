"""Java client names -> kafka-python's arguments; what has no equivalent is refused or dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kafka.errors import KafkaConfigurationError, KafkaConnectionError, KafkaError

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import PREFIX, Properties
from pyspark_upsert_kafka.core.secrets.outside_text import OutsideText
from pyspark_upsert_kafka.core.warning import warn_once
from pyspark_upsert_kafka.kafka.connections import tls
from pyspark_upsert_kafka.kafka.connections.client_errors import ClientErrors
from pyspark_upsert_kafka.kafka.connections.jaas import without_jaas
from pyspark_upsert_kafka.kafka.kafka_python import tokens
from pyspark_upsert_kafka.kafka.kafka_python.errors import ClientId
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3
from pyspark_upsert_kafka.kafka.kafka_python.tokens import token_provider
from pyspark_upsert_kafka.kafka.kafka_python.translations import (
    CONNECTION_REQUEST_MS,
    DEFAULTS,
    OURS,
    RENAMED,
    SECURITY,
    TRANSLATIONS,
    has_plain_value,
    no_equivalent,
    typed_value,
)

T = TypeVar("T")

_KERBEROS = (
    " Kerberos needs a package that is compiled here: pip install 'pyspark-upsert-kafka[kerberos]'."
)

_CLOSED_SOCKET = "Invalid file object"
"""How kafka-python-ng's ValueError begins when a connection is closed while it is opened."""


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
    given = without_jaas(properties.resolved())
    config = {"client_id": f"pyspark-upsert-kafka-{role}", **ours, **_translated(given)}
    _check_login(config)
    client_id = ClientId(config["client_id"])
    client_id.errors = ClientErrors({**given, **config})
    if str(config.get("security_protocol", "")).endswith("SSL"):
        config["ssl_context"] = tls.tls_context(given, client_id.errors)
    if config.get("sasl_mechanism") == "OAUTHBEARER":
        config["sasl_oauth_token_provider"] = token_provider(given, client_id.errors)
    return {**config, "client_id": client_id}


def _check_login(given: Mapping[str, Any]) -> None:
    by_name = str(given.get("sasl_mechanism", "")).startswith(("PLAIN", "SCRAM"))
    if by_name and not {"sasl_plain_username", "sasl_plain_password"} <= given.keys():
        raise OptionError(
            f"Option '{PREFIX}sasl.mechanism' = '{given['sasl_mechanism']}' needs "
            f"'{PREFIX}sasl.username' and '{PREFIX}sasl.password', or both in "
            f"'{PREFIX}sasl.jaas.config'."
        )


def open_client(client: Callable[..., T], config: Mapping[str, Any]) -> T:
    """Opens a client with those of the arguments that it has.

    Raises:
        OptionError: The client does not take a value.
        KafkaError: No broker answers.
    """
    known: Mapping[str, Any] = client.DEFAULT_CONFIG  # type: ignore[attr-defined]
    connections: list[Any] = []
    own_timeout = (
        {"request_timeout_ms": config[CONNECTION_REQUEST_MS]}
        if CONNECTION_REQUEST_MS in config
        else {}
    )

    def connect(**arguments: Any) -> Any:
        opened = connections_of_library()(**{**arguments, **own_timeout})
        connections.append(opened)
        return opened

    taken = {name: value for name, value in config.items() if name in known}
    if "kafka_client" in known:
        taken["kafka_client"] = connect
    try:
        if "sasl_oauth_token_provider" in taken:
            taken["sasl_oauth_token_provider"].token()  # here an error can be told
        return client(**taken)
    except (AssertionError, KafkaError, OSError, RuntimeError, TypeError, ValueError) as error:
        for connection in connections:
            connection.close()  # its threads would retry for ever
        if str(error).startswith(_CLOSED_SOCKET):
            raise KafkaConnectionError(str(error)) from error
        passes = isinstance(error, (KafkaError, OSError))
        if passes and not isinstance(error, KafkaConfigurationError):
            raise
        raise _not_taken(error, config) from None


def connections_of_library() -> Callable[..., Any]:
    """What opens the connections of a client of the installed library."""
    if IS_KAFKA_PYTHON_3:
        from pyspark_upsert_kafka.kafka.kafka_python import connections_v3

        return connections_v3.Connections
    from pyspark_upsert_kafka.kafka.kafka_python import connections_ng

    return connections_ng.Connections


def create_no_topics(metadata: Any) -> None:
    """Has a client's metadata requests create no topics."""
    if IS_KAFKA_PYTHON_3:
        # The client's argument of this name does not reach it (kafka-python 3.0).
        metadata.config["allow_auto_create_topics"] = False
    else:
        # A request for one topic may create it; a request for all creates none.
        metadata.need_all_topic_metadata = True


def _not_taken(error: Exception, config: Mapping[str, Any]) -> OptionError:
    text = OutsideText(config).shown(str(error) or type(error).__name__)
    remedy = _KERBEROS if "gssapi" in text.lower() else ""
    return OptionError(f"The Kafka client does not take an option '{PREFIX}*': {text}.{remedy}")


def _translated(given: Mapping[str, str]) -> dict[str, Any]:
    translated: dict[str, Any] = {}
    for name, value in given.items():
        argument = RENAMED.get(name, name.replace(".", "_"))
        if argument in OURS or name in tls.NAMES or name in tokens.NAMES:
            continue
        if name in TRANSLATIONS:
            translated.update(TRANSLATIONS[name](value, given))
        elif argument.startswith("ssl_"):
            raise no_equivalent(name)
        elif argument in DEFAULTS and has_plain_value(argument):
            translated[argument] = typed_value(name, argument, value)
        elif name.startswith(SECURITY):
            raise no_equivalent(name)
        else:
            warn_once(
                f"Option '{PREFIX}{name}' has no equivalent in the client 'kafka-python'; it is ignored."
            )
    return translated

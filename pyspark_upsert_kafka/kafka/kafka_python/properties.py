"""Java client names -> kafka-python's arguments; what has no equivalent is refused or dropped. Tokens to log in with, which it leaves to us."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaConfigurationError, KafkaConnectionError, KafkaError

from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    OptionError,
    RetriableBrokerError,
    warn_once,
)
from pyspark_upsert_kafka.core.masking import OutsideText, is_secret
from pyspark_upsert_kafka.core.options.properties import PREFIX, Properties
from pyspark_upsert_kafka.kafka import tls
from pyspark_upsert_kafka.kafka.failures import ClientErrors
from pyspark_upsert_kafka.kafka.kafka_python.errors import ClientId
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3
from pyspark_upsert_kafka.logins import own_tokens
from pyspark_upsert_kafka.logins.jaas import without_jaas
from pyspark_upsert_kafka.logins.login_tokens import AsksItself, LoginTokens, Token
from pyspark_upsert_kafka.logins.token_providers import tokens_of

if IS_KAFKA_PYTHON_3:
    from kafka.net.sasl.oauth import AbstractTokenProvider
else:
    from kafka.oauth import AbstractTokenProvider

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


class TokenError(KafkaError):  # type: ignore[misc]
    """A token cannot be had.

    Args:
        text: Why.
        retriable: Whether asking again may help.
    """

    def __init__(self, text: str, *, retriable: bool) -> None:
        super().__init__(text)
        self.retriable = retriable


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives kafka-python a token that is good, for each new connection.

    Args:
        tokens: The tokens.
        errors: Where it is reported that there is none.
    """

    def __init__(self, tokens: LoginTokens, errors: ClientErrors) -> None:
        self._tokens, self._errors = tokens, errors
        errors.gives_tokens = tokens
        self._given: Token | None = None

    def token(self) -> str:
        """A token.

        Raises:
            TokenError: There is none.
        """
        try:
            if self._given is None:
                self._tokens.serve(AsksItself(self))
            self._given = self._tokens.token()
        except BrokerError as error:
            passes = isinstance(error, RetriableBrokerError)
            # What the client asks itself may come back; of a provider that is named, a query that is started again.
            is_lost = self._errors.tokens is not None or not passes
            self._errors.add(str(error), security=is_lost)
            raise TokenError(str(error), retriable=passes) from None
        return self._given.text

    def extensions(self) -> dict[str, str]:
        """The SASL extensions of the token that was given last."""
        return {} if self._given is None else dict(self._given.extensions)


def token_provider(given: Mapping[str, str], errors: ClientErrors) -> TokenProvider:
    """Where tokens come from: a provider that is named, one of OpenID Connect, or the client itself.

    Args:
        given: The properties, references replaced.
        errors: Where it is reported that there is no token.

    Raises:
        OptionError: Something is missing or malformed.
    """
    errors.tokens = tokens_of(given)
    return TokenProvider(errors.tokens or own_tokens.own_tokens(given), errors)


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
        from pyspark_upsert_kafka.kafka.kafka_python import library_v3

        return library_v3.Connections
    from pyspark_upsert_kafka.kafka.kafka_python import library_ng

    return library_ng.Connections


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
        if argument in OURS or name in tls.NAMES or name in own_tokens.NAMES:
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


DEFAULTS: dict[str, Any] = {
    **KafkaAdminClient.DEFAULT_CONFIG,
    **KafkaConsumer.DEFAULT_CONFIG,
    **KafkaProducer.DEFAULT_CONFIG,
    # Not arguments of every version, but the connector understands them.
    "allow_auto_create_topics": False,
    "buffer_memory": 0,
    "delivery_timeout_ms": 0,
    "enable_idempotence": True,
    "isolation_level": "",
}
"""All arguments of the clients and their defaults, which tell their types."""

_NUMBERS = frozenset({"receive_buffer_bytes", "send_buffer_bytes"})
"""Numbers that have no default."""

RENAMED = {
    "compression.codec": "compression_type",
    "fetch.message.max.bytes": "max_partition_fetch_bytes",
    "fetch.wait.max.ms": "fetch_max_wait_ms",
    "max.in.flight": "max_in_flight_requests_per_connection",
    "message.max.bytes": "max_request_size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery_timeout_ms",
    "metadata.broker.list": "bootstrap_servers",
    "queue.buffering.max.ms": "linger_ms",
    "request.required.acks": "acks",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.password": "sasl_plain_password",
    "sasl.username": "sasl_plain_username",
    "socket.receive.buffer.bytes": "receive_buffer_bytes",
    "socket.send.buffer.bytes": "send_buffer_bytes",
}

OURS = frozenset({"api_version", "auto_offset_reset", "enable_auto_commit", "max_poll_records"})
"""Arguments that the connector sets itself."""

SECURITY = ("enable.ssl", "sasl.", "security.", "ssl.")
"""How the names of security settings begin: one without an equivalent is refused."""

_KINIT = (
    "get a ticket with kinit, or let the environment variable KRB5_CLIENT_KTNAME name the keytab, on the "
    "driver and on each executor, and leave it out"
)

REMEDIES = {
    "enable.ssl.certificate.verification": "set 'properties.ssl.ca.location' to a PEM file that can be trusted",
    "sasl.kerberos.kinit.cmd": _KINIT,
    "sasl.kerberos.keytab": _KINIT,
    "sasl.kerberos.principal": _KINIT,
}
"""What to do instead of a security setting, by its name."""

ANY_REMEDY = "leave it out, or set 'kafka.client' to 'librdkafka'"


Translation = Callable[[str, Mapping[str, str]], dict[str, Any]]
"""Gives the arguments for a value, and for all properties that are given."""

CONNECTION_REQUEST_MS = "connection_request_ms"
"""How long a connection waits for an answer, where that is not the ``request_timeout_ms`` of the client: the connector's own argument."""

QUEUED_MESSAGES = "queued_messages"
"""How many messages may be unconfirmed: the connector's own argument."""


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


def no_equivalent(name: str) -> OptionError:
    """The error for a security setting that kafka-python does not have."""
    return OptionError(
        f"Option '{PREFIX}{name}' has no equivalent in the client 'kafka-python': "
        f"{REMEDIES.get(name, ANY_REMEDY)}."
    )


def _followed_by_connector(_: str, __: Mapping[str, str]) -> dict[str, Any]:
    """For a property that the connector itself follows."""
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
    "default.api.timeout.ms": _followed_by_connector,
    "queue.buffering.max.kbytes": _queued_kbytes,
    "queue.buffering.max.messages": _queued_messages,
    "request.required.acks": _acks,
    "retries": _retries,
    "security.protocol": _protocol,
}
"""By the name of the property, as Java or librdkafka spells it."""

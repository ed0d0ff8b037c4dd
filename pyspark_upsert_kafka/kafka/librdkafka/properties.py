"""Java client names -> librdkafka's names; what has no equivalent is refused or dropped."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, cast

import confluent_kafka as ck
from confluent_kafka import KafkaError, KafkaException

from pyspark_upsert_kafka.core import key_stores
from pyspark_upsert_kafka.core.errors import OptionError, RetriableBrokerError, warn_once
from pyspark_upsert_kafka.core.masking import OutsideText
from pyspark_upsert_kafka.core.options.properties import PREFIX, SPELLINGS, Properties
from pyspark_upsert_kafka.kafka.librdkafka.errors import WithoutSecrets
from pyspark_upsert_kafka.kafka.native import (
    MAY_BE_CALLED,
    Login,
    LoginConsumer,
    LoginProducer,
    can_log_in,
    may_be_called,
)
from pyspark_upsert_kafka.kafka.retrying import Timeouts
from pyspark_upsert_kafka.logins.jaas import without_jaas
from pyspark_upsert_kafka.logins.login_tokens import TOKENS, AsksItself, LoginTokens
from pyspark_upsert_kafka.logins.rented_kafka import msk_region
from pyspark_upsert_kafka.logins.token_providers import CONFIG, OWN_WAY, PROVIDER, tokens_of

T = TypeVar("T")

_Translation = Callable[[str, Mapping[str, str]], dict[str, str]]
"""Gives librdkafka's properties for a value, and for all properties that are given."""

_ANSWER_TIMEOUT = "socket.timeout.ms"
"""librdkafka's name for how long an answer is waited for."""

_MOST_ANSWER_MS, _LONGER_THAN_FETCH_MS = 300_000, 1_000
"""librdkafka's bounds: the longest, and how much longer an answer is waited for than a broker may wait for messages."""

_LOGGER = "logger"

_FETCH_WAIT_MS = 500
"""librdkafka's default for ``fetch.wait.max.ms``."""

_TOKENS = (
    "sasl.oauthbearer.token.endpoint.url",
    "enable.sasl.oauthbearer.unsecure.jwt",
    "sasl.oauthbearer.method",
)
"""One of them says where tokens come from."""

_SINCE = {"azure_imds": "2.12", "aws_iam": "2.15"}
"""The version of librdkafka and confluent-kafka that brought a way to tokens."""

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_NO_KERBEROS = "No provider for SASL mechanism GSSAPI"
_NO_MECHANISM = re.compile(
    r"(?:Unsupported hash function|Unsupported SASL mechanism|No provider for SASL mechanism):? ([^\s:]+)"
)
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_NO_PROTOCOL = re.compile(r'Invalid value "([^"]*)" for configuration property "security.protocol"')
_UNKNOWN = re.compile(r'No such configuration property: "([^"]*)"')


def client_config(properties: Properties, role: str, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Librdkafka's configuration for one role.

    Args:
        properties: As the user gave them.
        role: ``reader``, ``writer`` or ``driver``: part of the client id.
        ours: What the connector sets for this role unless the user says otherwise.

    Raises:
        OptionError: A security setting that only a JVM understands, a reference to nothing, or a provider of tokens that may not
            be called.
    """
    named = without_jaas(properties.resolved())
    tokens = tokens_of(named)
    if tokens is not None:
        named = {name: value for name, value in named.items() if name not in (PROVIDER, CONFIG)}
    given = _translated(named)
    if tokens is None:
        _check_tokens(given)
        _check_own_way(given)
    _check_password(given)
    _check_identity(given)
    if given.get("security.protocol", "").upper().endswith("SSL"):  # else nobody reads them
        key_stores.check_pem_files(PREFIX, given)
    config = {
        "client.id": f"pyspark-upsert-kafka-{role}",
        _LOGGER: WithoutSecrets({**given, TOKENS: tokens}),
    }
    if tokens is not None:
        config[TOKENS] = tokens
    if not properties.native:
        config[MAY_BE_CALLED] = False
    config = {**config, **_reconnecting(given), **ours, **given}
    return {_ANSWER_TIMEOUT: _answer_timeout_ms(config), **config}


def _answer_timeout_ms(config: Mapping[str, Any]) -> int:
    """How long a broker's answer to any request is waited for, within what librdkafka takes.

    In Java that is ``request.timeout.ms``, which librdkafka knows for a producer's messages alone.
    """
    request_ms = Timeouts.from_properties(config).request_s * 1000
    fetch_ms = str(config.get("fetch.wait.max.ms", _FETCH_WAIT_MS))
    longer_ms = int(fetch_ms) + _LONGER_THAN_FETCH_MS if fetch_ms.isdigit() else 0
    return min(_MOST_ANSWER_MS, max(int(request_ms), longer_ms))


def _reconnecting(given: Mapping[str, str]) -> dict[str, int]:
    """How long a client waits before it connects again; nothing where the user says it, since one bounds the other."""
    if {"reconnect.backoff.ms", "reconnect.backoff.max.ms"} & given.keys():
        return {}
    return {
        # Half of it passes between two connections of a new client, the first of which is to a bootstrap server and is not kept.
        "reconnect.backoff.ms": 20,
        # After a broker's restart nobody waits long for the next try: the Java client's default.
        "reconnect.backoff.max.ms": 1_000,
    }


def _check_tokens(given: Mapping[str, str]) -> None:
    """Without a source of tokens librdkafka would wait for one, and report nothing."""
    is_by_token = (
        given.get("sasl.mechanism", given.get("sasl.mechanisms", "")).upper() == "OAUTHBEARER"
    )
    if is_by_token and not any(name in given for name in _TOKENS):
        raise OptionError(
            f"Option '{PREFIX}sasl.mechanism' = 'OAUTHBEARER' needs '{PREFIX}sasl.oauthbearer.token.endpoint.url', the "
            f"address of the provider that gives tokens, or '{PREFIX}{PROVIDER}', a function that does."
        )


def _check_own_way(given: Mapping[str, str]) -> None:
    """A way to tokens of librdkafka's own that the installed one does not have, or whose tokens brokers do not take."""
    way = given.get(OWN_WAY)
    if way is None:
        return
    needed, (version, number) = _SINCE.get(way, "0.0"), ck.libversion()
    major, minor = map(int, needed.split("."))
    if number < major << 24 | minor << 16:
        raise OptionError(
            f"Option '{PREFIX}{OWN_WAY}' = '{way}' needs librdkafka {needed} or newer, but here is {version}: "
            f"pip install 'confluent-kafka>={needed}'."
        )
    if way == "aws_iam" and msk_region(given.get("bootstrap.servers", "")):
        raise OptionError(
            f"Option '{PREFIX}{OWN_WAY}' = 'aws_iam' gives web identity tokens of AWS, as Confluent Cloud takes them, and the "
            f"brokers are of Amazon MSK, which takes signatures: set '{PREFIX}{PROVIDER}' = 'aws-msk' in its place."
        )


def _check_password(given: Mapping[str, str]) -> None:
    """Without user or password librdkafka's own error names neither option as it was given."""
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms", "")).upper()
    names = ("sasl.username", "sasl.password")
    missing = [name for name in names if not given.get(name)]
    is_used = given.get("security.protocol", "").upper().startswith("SASL")
    if is_used and missing and mechanism.startswith(("PLAIN", "SCRAM")):
        raise OptionError(
            f"Option '{PREFIX}sasl.mechanism' = '{mechanism}' needs '{PREFIX}sasl.username' and '{PREFIX}sasl.password', or "
            f"both in '{PREFIX}sasl.jaas.config', and "
            + " and ".join(f"'{PREFIX}{name}'" for name in missing)
            + (" is" if len(missing) == 1 else " are")
            + " not given."
        )


def _check_identity(given: Mapping[str, str]) -> None:
    """With a certificate and no key, or the other way round, librdkafka shows the broker neither, and reports nothing."""
    has_chain = any(name in given for name in ("ssl.certificate.location", "ssl.certificate.pem"))
    has_key = any(name in given for name in ("ssl.key.location", "ssl.key.pem"))
    if has_chain != has_key:
        found, missing = ("certificate", "key") if has_chain else ("key", "certificate")
        raise OptionError(
            f"A certificate and its key belong together, but there is a {found} without a {missing}: set "
            f"'{PREFIX}ssl.keystore.certificate.chain' and '{PREFIX}ssl.keystore.key', or "
            f"'{PREFIX}ssl.certificate.location' and '{PREFIX}ssl.key.location'."
        )


def open_client(client: Callable[[dict[str, Any]], T], config: dict[str, Any]) -> T:
    """Opens a client with this configuration.

    Raises:
        OptionError: The client does not take a property, or needs a package for it.
        BrokerError: There is no token to log in with.
    """
    tokens, native = config.get(TOKENS), may_be_called(config)
    plain = {name: value for name, value in config.items() if name not in (TOKENS, MAY_BE_CALLED)}
    try:
        return client(plain) if tokens is None else _logged_in(client, plain, tokens, native=native)
    except (ImportError, KafkaException, RuntimeError, TypeError, ValueError) as error:
        if _is_refused_login(error):
            raise RetriableBrokerError(
                f"There is no token to log in with: {OutsideText(config).shown(str(error.args[0]))}."
            ) from None
        raise _invalid(error, config) from None


def _is_refused_login(error: Exception) -> bool:
    """Whether confluent-kafka has waited for a token in vain; no broker has been asked."""
    found = error.args[0] if error.args else None
    return isinstance(found, KafkaError) and found.code() == KafkaError.SASL_AUTHENTICATION_FAILED


_FOR_LOGIN: dict[object, Callable[..., Any]] = {
    ck.Consumer: LoginConsumer,
    ck.Producer: LoginProducer,
}
"""What takes the place of confluent-kafka's clients where tokens are set."""


def _logged_in(
    client: Callable[[dict[str, Any]], T],
    config: dict[str, Any],
    tokens: LoginTokens,
    *,
    native: bool,
) -> T:
    """Opens a client that has a token, and gets each later one.

    A callback that is asked for it, as confluent-kafka has one, would be waited for a second with each client.
    """
    tokens.token()  # else no client is opened
    opening = cast("Callable[[dict[str, Any]], T]", _FOR_LOGIN.get(client, client))
    if native and can_log_in():
        opened = opening(config)
        tokens.serve(Login(opened))
        return opened

    def answer(_: str) -> tuple[object, ...]:
        token = tokens.token()
        return token.text, token.expires_at, token.principal, dict(token.extensions)

    opened = opening({**config, "oauth_cb": answer})
    tokens.serve(AsksItself(opened))
    return opened


def _invalid(error: Exception, config: Mapping[str, Any]) -> OptionError:
    said = error.args[0].str() if isinstance(error, KafkaException) else str(error)
    text = _as_given(OutsideText(config).shown(said.strip()), config)
    if _NO_KERBEROS in text:
        return OptionError(
            "The installed librdkafka has no Kerberos, which is what "
            f"'{PREFIX}sasl.mechanism' = 'GSSAPI', its default, asks for: set it to 'PLAIN', "
            "'SCRAM-SHA-256', 'SCRAM-SHA-512' or 'OAUTHBEARER', or set 'kafka.client' to 'kafka-python', which has "
            "it (pip install 'pyspark-upsert-kafka[kafka-python,kerberos]')."
        )
    if mechanism := _NO_MECHANISM.search(text):
        return OptionError(
            f"Invalid value for option '{PREFIX}sasl.mechanism': expected one of {', '.join(_MECHANISMS)}, "
            f"but is '{mechanism[1]}'."
        )
    if protocol := _NO_PROTOCOL.search(text):
        return OptionError(
            f"Invalid value for option '{PREFIX}security.protocol': expected one of {', '.join(_PROTOCOLS)}, "
            f"but is '{protocol[1]}'."
        )
    unknown = _UNKNOWN.search(text)
    if unknown:
        return _unknown(unknown[1])
    return OptionError(
        f"The Kafka client does not take an option '{PREFIX}*': {text}. Both the Java client's names "
        "and librdkafka's are understood."
    )


def _as_given(text: str, config: Mapping[str, Any]) -> str:
    """The text with the names that were given; librdkafka knows a property by one of its names alone.

    >>> _as_given('Invalid value for configuration property "queue.buffering.max.ms"', {"linger.ms": "x"})
    'Invalid value for configuration property "linger.ms"'
    """
    for name, alias in SPELLINGS.items():
        if alias in config and name not in config:
            text = text.replace(f'"{name}"', f'"{alias}"').replace(f"`{name}`", f"`{alias}`")
    return text


def _unknown(name: str) -> OptionError:
    return OptionError(f"Unknown option '{PREFIX}{name}'.{_did_you_mean(name)}")


def _did_you_mean(name: str) -> str:
    near = get_close_matches(name, sorted({*SHARED, *RENAMED, *DROPPED, *JVM_ONLY}), n=1)
    hint = f" Did you mean '{PREFIX}{near[0]}'?" if near else ""
    return f"{hint} Both the Java client's names and librdkafka's are understood."


def _translated(given: Mapping[str, str]) -> dict[str, str]:
    translated: dict[str, str] = {}
    for name, value in given.items():
        if name in DROPPED or name.startswith("config.providers."):
            warn_once(
                f"Option '{PREFIX}{name}' tunes the Java client and has no equivalent here; it is "
                "ignored."
            )
        elif name in _SPECIAL:
            translated.update(_SPECIAL[name](value, given))
        elif name in JVM_ONLY:
            raise _works_in_jvm_only(name)
        elif name == _LOGGER:  # which confluent-kafka takes, but not as a text
            raise _unknown(name)
        else:
            translated[RENAMED.get(name, name)] = value
    return translated


def _works_in_jvm_only(name: str) -> OptionError:
    return OptionError(f"Option '{PREFIX}{name}' works in a JVM only: {JVM_ONLY[name]}.")


def _followed_by_connector(_: str, __: Mapping[str, str]) -> dict[str, str]:
    """For a property that the connector itself follows."""
    return {}


def _token_endpoint(value: str, _: Mapping[str, str]) -> dict[str, str]:
    # Java knows by the address alone that tokens come from an OpenID Connect provider (KIP-768).
    return {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": value}


def _own_way(value: str, _: Mapping[str, str]) -> dict[str, str]:
    return {"sasl.oauthbearer.method": "oidc", OWN_WAY: value}  # there is no other


def _store_type(name: str) -> _Translation:
    def translate(value: str, _: Mapping[str, str]) -> dict[str, str]:
        key_stores.check_type(PREFIX + name, value)
        return {}  # what a store is its content says

    return translate


def _truststore(value: str, given: Mapping[str, str]) -> dict[str, str]:
    name = "ssl.truststore.location"
    if key_stores.is_pem(PREFIX + name, value):
        return {"ssl.ca.location": value}
    password = given.get("ssl.truststore.password")
    return {"ssl.ca.pem": key_stores.authorities(PREFIX + name, value, password)}


def _keystore(value: str, _: Mapping[str, str]) -> dict[str, str]:
    if key_stores.is_pem(f"{PREFIX}ssl.keystore.location", value):  # key and chain in one file
        return {"ssl.certificate.location": value, "ssl.key.location": value}
    return {"ssl.keystore.location": value}


def _host_check(value: str, _: Mapping[str, str]) -> dict[str, str]:
    return {"ssl.endpoint.identification.algorithm": value or "none"}


def _acks(value: str, _: Mapping[str, str]) -> dict[str, str]:
    return {"acks": "all" if value == "-1" else value}


def _buffer_memory(value: str, _: Mapping[str, str]) -> dict[str, str]:
    if not value.isdigit():
        raise OptionError(
            f"Invalid value for option '{PREFIX}buffer.memory': expected bytes, but is {value!r}."
        )
    return {"queue.buffering.max.kbytes": str(max(1, int(value) // 1024))}


_SPECIAL: dict[str, _Translation] = {
    "acks": _acks,
    "auto.offset.reset": _followed_by_connector,
    "buffer.memory": _buffer_memory,
    "default.api.timeout.ms": _followed_by_connector,
    "sasl.oauthbearer.token.endpoint.url": _token_endpoint,
    OWN_WAY: _own_way,
    "ssl.endpoint.identification.algorithm": _host_check,
    "ssl.keystore.location": _keystore,
    "ssl.keystore.type": _store_type("ssl.keystore.type"),
    "ssl.truststore.location": _truststore,
    "ssl.truststore.password": _followed_by_connector,
    "ssl.truststore.type": _store_type("ssl.truststore.type"),
}


RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.mechanism": "sasl.mechanisms",
    "sasl.oauthbearer.assertion.template.file": "sasl.oauthbearer.assertion.jwt.template.file",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}

_NO_GROUP_IS_JOINED = frozenset({
    "group.instance.id", "group.protocol", "group.remote.assignor", "heartbeat.interval.ms",
    "internal.leave.group.on.close", "leave.group.on.close", "max.poll.interval.ms",
    "partition.assignment.strategy", "session.timeout.ms", "share.acknowledgement.mode",
    "share.acquire.mode",
})  # fmt: skip

DROPPED = _NO_GROUP_IS_JOINED | frozenset({
    "auto.commit.interval.ms", "auto.include.jmx.reporter", "bootstrap.controllers",
    "compression.gzip.level", "compression.lz4.level", "compression.zstd.level", "config.providers",
    "dns.lookup", "exclude.internal.topics",
    "internal.throw.on.fetch.stable.offset.unsupported", "max.block.ms", "max.poll.records",
    "metadata.max.idle.ms", "metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy",
    "metric.reporters", "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
    "partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms",
    "partitioner.ignore.keys", "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor", "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms", "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter", "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms", "socket.connection.setup.timeout.max.ms",
    "transaction.two.phase.commit.enable",
})  # fmt: skip
"""Tuning without an equivalent, or of no use here: dropped, and a warning is logged."""

_OPENSSL = "security comes from OpenSSL; leave it out"
_NO_CLASSES = "there is no JVM to load a class in"
_NO_VALIDATION = "the token is checked by the broker alone; leave it out"

JVM_ONLY = {
    "sasl.client.callback.handler.class": _NO_CLASSES,
    "sasl.login.callback.handler.class": f"{_NO_CLASSES}; '{PREFIX}{PROVIDER}' names a function that gives tokens",
    "sasl.login.class": _NO_CLASSES,
    "sasl.oauthbearer.clock.skew.seconds": _NO_VALIDATION,
    "sasl.oauthbearer.expected.audience": _NO_VALIDATION,
    "sasl.oauthbearer.expected.issuer": _NO_VALIDATION,
    "sasl.oauthbearer.header.urlencode": "OpenID Connect's form of the header is used; leave it out",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _NO_VALIDATION,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _NO_VALIDATION,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _NO_VALIDATION,
    "sasl.oauthbearer.jwks.endpoint.url": _NO_VALIDATION,
    "sasl.oauthbearer.jwt.retriever.class": _NO_CLASSES,
    "sasl.oauthbearer.jwt.validator.class": _NO_CLASSES,
    "sasl.oauthbearer.scope.claim.name": _NO_VALIDATION,
    "security.providers": _OPENSSL,
    "ssl.enabled.protocols": "the protocol is negotiated by OpenSSL; leave it out",
    "ssl.engine.factory.class": _NO_CLASSES,
    "ssl.keymanager.algorithm": _OPENSSL,
    "ssl.protocol": "the protocol is negotiated by OpenSSL; leave it out",
    "ssl.provider": _OPENSSL,
    "ssl.secure.random.implementation": _OPENSSL,
    "ssl.trustmanager.algorithm": _OPENSSL,
}
"""Security that only a JVM understands, and what to do instead: never dropped silently."""

SHARED = frozenset({
    "acks", "allow.auto.create.topics", "batch.size", "bootstrap.servers", "buffer.memory",
    "check.crcs", "client.dns.lookup", "client.id", "client.rack", "compression.type",
    "connections.max.idle.ms", "default.api.timeout.ms", "delivery.timeout.ms", "enable.idempotence", "enable.metrics.push",
    "fetch.max.bytes", "fetch.min.bytes", "group.id", "isolation.level", "linger.ms",
    "max.in.flight.requests.per.connection", "max.partition.fetch.bytes", "metadata.max.age.ms",
    "reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms", "retries",
    "retry.backoff.max.ms", "retry.backoff.ms", "sasl.jaas.config", "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin", "sasl.kerberos.service.name", "sasl.mechanisms",
    "sasl.oauthbearer.scope", "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.token.provider", "sasl.password",
    "sasl.username", "security.protocol",
    "socket.connection.setup.timeout.ms", "ssl.ca.location", "ssl.certificate.location",
    "ssl.cipher.suites", "ssl.endpoint.identification.algorithm", "ssl.key.location",
    "ssl.key.password", "ssl.keystore.location", "ssl.keystore.password", "transaction.timeout.ms",
})  # fmt: skip
"""Names that need no translation, for "did you mean"; librdkafka itself knows many more."""

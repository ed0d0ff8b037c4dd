"""Java client names -> librdkafka's names; what has no equivalent is refused or dropped."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaException

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.properties import PREFIX, Properties

logger = logging.getLogger("pyspark_upsert_kafka")
client_log = logging.getLogger("pyspark_upsert_kafka.librdkafka")

_RENAMED = {
    "sasl.mechanism": "sasl.mechanisms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}

_DROPPED = frozenset({
    "auto.commit.interval.ms", "auto.include.jmx.reporter", "default.api.timeout.ms", "dns.lookup",
    "enable.metrics.push", "exclude.internal.topics", "max.block.ms", "max.poll.records",
    "metadata.max.idle.ms", "metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms",
    "metric.reporters", "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
    "partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms",
    "partitioner.ignore.keys", "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter", "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor", "socket.connection.setup.timeout.max.ms",
    "group.protocol.type", "leave.group.on.close", "internal.leave.group.on.close",
    "transaction.timeout.ms",
})  # fmt: skip
"""The Java client's tuning settings that librdkafka has no word for."""

_JVM_ONLY = {
    "sasl.jaas.config": "set 'properties.sasl.username' and 'properties.sasl.password'",
    "ssl.truststore.location": "set 'properties.ssl.ca.location' to a PEM file",
    "ssl.truststore.type": "set 'properties.ssl.ca.location' to a PEM file",
    "ssl.truststore.password": "set 'properties.ssl.ca.location' to a PEM file",
    "ssl.keystore.type": "'properties.ssl.keystore.location' must be a PKCS#12 file",
    "ssl.protocol": "the protocol is negotiated by OpenSSL; leave it out",
    "ssl.enabled.protocols": "the protocol is negotiated by OpenSSL; leave it out",
    "ssl.provider": "security comes from OpenSSL; leave it out",
    "ssl.keymanager.algorithm": "security comes from OpenSSL; leave it out",
    "ssl.trustmanager.algorithm": "security comes from OpenSSL; leave it out",
    "ssl.secure.random.implementation": "security comes from OpenSSL; leave it out",
    "ssl.engine.factory.class": "there is no JVM to load a class in",
    "security.providers": "security comes from OpenSSL; leave it out",
    "sasl.login.class": "there is no JVM to load a class in",
    "sasl.login.callback.handler.class": "there is no JVM to load a class in",
    "sasl.client.callback.handler.class": "there is no JVM to load a class in",
}
"""Security settings that only a JVM understands, and what to use instead: never dropped silently."""

_JAAS_LOGIN = re.compile(
    r"\s*[\w.$]*\.(?:PlainLoginModule|ScramLoginModule)\s+(?:required|requisite|sufficient|optional)\s+"
    r"(?P<pairs>(?:\w+\s*=\s*(?:\"[^\"]*\"|'[^']*'|\S+)\s*)+?);?\s*"
)
_JAAS_PAIR = re.compile(r"(\w+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;]+))")

_dropped_before: set[str] = set()


def client_config(properties: Properties, role: str, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Librdkafka's configuration for one role.

    Args:
        properties: As the user gave them.
        role: ``reader``, ``writer`` or ``driver``: part of the client id.
        ours: What the connector sets for this role unless the user says otherwise.

    Raises:
        OptionError: A security setting that only a JVM understands, or a reference to nothing.
    """
    config = {
        "client.id": f"pyspark-upsert-kafka-{role}",
        "logger": client_log,
        **ours,
    }
    return {**config, **_translated(properties.resolved())}


def invalid_property(error: KafkaException) -> OptionError:
    """What librdkafka says of a configuration it does not take, as an error of ours."""
    text = error.args[0].str() if error.args else str(error)
    return OptionError(
        f"The Kafka client does not take an option '{PREFIX}*': {text}. Both the Java client's names "
        "and librdkafka's are understood."
    )


def _translated(given: Mapping[str, str]) -> dict[str, str]:
    translated: dict[str, str] = {}
    for name, value in given.items():
        if name in _DROPPED:
            _warn_once(name)
        elif name in _SPECIAL:
            translated.update(_SPECIAL[name](value, given))
        elif name in _JVM_ONLY:
            raise _works_in_jvm_only(name)
        else:
            translated[_RENAMED.get(name, name)] = value
    return translated


def _works_in_jvm_only(name: str) -> OptionError:
    return OptionError(f"Option '{PREFIX}{name}' works in a JVM only: {_JVM_ONLY[name]}.")


def _from_jaas(value: str, _: Mapping[str, str]) -> dict[str, str]:
    if not _JAAS_LOGIN.fullmatch(value):
        raise _works_in_jvm_only("sasl.jaas.config")
    pairs = {name: a or b or c for name, a, b, c in _JAAS_PAIR.findall(value)}
    return {f"sasl.{name}": pairs[name] for name in ("username", "password") if name in pairs}


def _truststore_type(value: str, _: Mapping[str, str]) -> dict[str, str]:
    if value.upper() != "PEM":
        raise _works_in_jvm_only("ssl.truststore.type")
    return {}


def _truststore(value: str, given: Mapping[str, str]) -> dict[str, str]:
    if given.get("ssl.truststore.type", "").upper() != "PEM":
        raise _works_in_jvm_only("ssl.truststore.location")
    return {"ssl.ca.location": value}


def _keystore_type(value: str, _: Mapping[str, str]) -> dict[str, str]:
    if value.upper() not in ("PKCS12", "PEM"):
        raise _works_in_jvm_only("ssl.keystore.type")
    return {}


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


_SPECIAL: dict[str, Callable[[str, Mapping[str, str]], dict[str, str]]] = {
    "acks": _acks,
    "buffer.memory": _buffer_memory,
    "sasl.jaas.config": _from_jaas,
    "ssl.endpoint.identification.algorithm": _host_check,
    "ssl.keystore.type": _keystore_type,
    "ssl.truststore.location": _truststore,
    "ssl.truststore.type": _truststore_type,
}


def _warn_once(name: str) -> None:
    if name not in _dropped_before:
        _dropped_before.add(name)
        logger.warning(
            "Option '%s%s' tunes the Java client and has no equivalent here; it is ignored.",
            PREFIX,
            name,
        )

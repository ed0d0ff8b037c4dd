"""The Java client's property names that librdkafka spells differently, or does not know.

Names that both clients share are not here. Checked against the configuration classes of Kafka 4.3
(``ProducerConfig``, ``ConsumerConfig``, ``AdminClientConfig``), and some of older versions.
"""

from __future__ import annotations

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
    "sasl.login.callback.handler.class": _NO_CLASSES,
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
    "sasl.oauthbearer.token.endpoint.url", "sasl.password", "sasl.username", "security.protocol",
    "socket.connection.setup.timeout.ms", "ssl.ca.location", "ssl.certificate.location",
    "ssl.cipher.suites", "ssl.endpoint.identification.algorithm", "ssl.key.location",
    "ssl.key.password", "ssl.keystore.location", "ssl.keystore.password", "transaction.timeout.ms",
})  # fmt: skip
"""Names that need no translation, for "did you mean"; librdkafka itself knows many more."""

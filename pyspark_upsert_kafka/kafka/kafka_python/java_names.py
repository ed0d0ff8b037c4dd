"""The Java client's and librdkafka's property names, and what kafka-python calls them.

A name that is not here is the same with ``_`` for ``.``, or is unknown.
"""

from __future__ import annotations

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
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.cipher.suites": "ssl_ciphers",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}

OURS = frozenset({"api_version", "auto_offset_reset", "enable_auto_commit", "max_poll_records"})
"""What the connector sees to itself, in kafka-python's words."""

SECURITY = ("enable.ssl", "sasl.", "security.", "ssl.")
"""How the names of security settings begin: one without an equivalent is refused."""

_FILES = "put it into a file and set 'properties.ssl.ca.location', 'properties.ssl.certificate.location' and 'properties.ssl.key.location'"
_KINIT = "get a ticket with kinit, and leave it out"
_TOKENS = "set 'kafka.client' to 'librdkafka' for OAUTHBEARER"

REMEDIES = {
    "enable.ssl.certificate.verification": "set 'properties.ssl.ca.location' to a PEM file that can be trusted",
    "sasl.kerberos.kinit.cmd": _KINIT,
    "sasl.kerberos.keytab": _KINIT,
    "sasl.kerberos.principal": _KINIT,
    "sasl.oauthbearer.": _TOKENS,
    "ssl.ca.pem": _FILES,
    "ssl.certificate.pem": _FILES,
    "ssl.key.pem": _FILES,
    "ssl.keystore.certificate.chain": _FILES,
    "ssl.keystore.key": _FILES,
    "ssl.keystore.": "set 'properties.ssl.certificate.location' and 'properties.ssl.key.location' to PEM files",
    "ssl.truststore.certificates": _FILES,
    "ssl.truststore.": "set 'properties.ssl.ca.location' to a PEM file",
}
"""What to do instead of a security setting, by how its name begins; the longest one counts."""

ANY_REMEDY = "leave it out, or set 'kafka.client' to 'librdkafka'"

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
}

OURS = frozenset({"api_version", "auto_offset_reset", "enable_auto_commit", "max_poll_records"})
"""What the connector sees to itself, in kafka-python's words."""

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

"""What of librdkafka's own log is passed on."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.kafka.librdkafka.properties import client_log


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("Configuration property fetch.min.bytes will be ignored by this producer instance", False),
        ("Failed to acquire idempotence PID: Coordinator load in progress: retrying", False),
        ("Failed to acquire idempotence PID: Cluster authorization failed", True),
    ],
)
def test_the_clients_log_tells_only_what_matters(caplog, text, is_told):
    """What it does by itself, and what follows from the connector's own settings, is no warning."""
    client_log.warning(text)

    assert bool(caplog.records) == is_told

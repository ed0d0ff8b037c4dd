"""What of librdkafka's own log is passed on."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.kafka.librdkafka.client_log import client_log


@pytest.mark.parametrize(
    ("text", "is_passed"),
    [
        ("Configuration property fetch.min.bytes will be ignored by this producer instance", False),
        ("Failed to acquire idempotence PID: Coordinator load in progress: retrying", False),
        ("Failed to acquire idempotence PID: Cluster authorization failed", True),
    ],
)
def test_only_what_matters_of_the_log_is_passed_on(caplog, text, is_passed):
    """What it does by itself, and what follows from the connector's own settings, is no warning."""
    client_log.warning(text)

    assert bool(caplog.records) == is_passed


def failed(client: str, port: int, ms: int) -> str:
    """What librdkafka logs when nobody listens."""
    return (
        f"FAIL [app#{client}] [thrd:b:{port}/bootstrap]: b:{port}/bootstrap: Connect to "
        f"ipv4#10.0.0.1:{port} failed: Connection refused (after {ms}ms in state CONNECT)"
    )


def test_a_broker_that_is_away_is_passed_once(caplog):
    """Not at each of twenty attempts a second; another broker is logged too."""
    for attempt in range(100):
        client_log.error(failed(f"producer-{attempt}", 9091, attempt))
    client_log.error(failed("producer-1", 9092, 0))

    assert [record.getMessage() for record in caplog.records] == [
        failed("producer-0", 9091, 0),
        failed("producer-1", 9092, 0),
    ]

"""A token endpoint that is away, and one that refuses."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from pyspark_upsert_kafka.kafka.failures import FailureKind
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors, kind_of

NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token: "


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (
            "Failed to connect to 127.0.0.1:1 after 0 ms: Could not connect to server",
            FailureKind.RETRIABLE,
        ),
        ("Couldn't connect to server", FailureKind.RETRIABLE),
        ("Could not resolve host: nowhere.invalid", FailureKind.RETRIABLE),
        (
            "Operation timed out after 10001 milliseconds with 0 bytes received",
            FailureKind.RETRIABLE,
        ),
        ("invalid_client", FailureKind.SECURITY),
        ("OpenID Connect: the client is unknown", FailureKind.SECURITY),
    ],
)
def test_a_token_endpoint_that_is_away_may_come_back(said: str, kind: FailureKind) -> None:
    """It has refused nothing: brokers are asked for as long as in any outage, and no credentials are blamed."""
    error = KafkaError(KafkaError._AUTHENTICATION, NO_TOKEN + said)
    reported = ReportedErrors()
    reported.on_error(error)

    assert kind_of(error) is kind
    assert bool(reported.security_error) == (kind is FailureKind.SECURITY)
    assert said in reported.describe()

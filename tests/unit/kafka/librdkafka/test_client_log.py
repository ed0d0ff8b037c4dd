"""What of librdkafka's own log is passed on."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError

from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors, WithoutSecrets, client_log
from pyspark_upsert_kafka.logins.login_tokens import TOKENS, LoginTokens


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


SECRETS = {"sasl.oauthbearer.client.secret": "s3cret", "client.id": "app"}


def test_secrets_in_the_log_of_a_client_are_starred_out(caplog):
    """A token endpoint may answer with the request that it got."""
    WithoutSecrets(SECRETS).log(
        40, "%s [%s] %s", "OIDC", "app", "got s3cret: Basic YXBwOnMzY3JldA=="
    )

    assert [record.getMessage() for record in caplog.records] == ["OIDC [app] got ***: Basic ***"]


def test_a_token_is_starred_out_in_what_a_client_says(caplog):
    """In its log and in its errors: no setting has it, so only who gives the tokens knows them."""
    tokens = LoginTokens("acme", lambda: ("opaque-0815", time.time() + 60))
    config = {TOKENS: tokens}
    tokens.token()

    WithoutSecrets(config).log(40, "%s", "opaque-0815 is revoked")
    errors = ReportedErrors(config)
    errors.on_error(KafkaError(KafkaError._AUTHENTICATION, "opaque-0815 is revoked"))

    assert [record.getMessage() for record in caplog.records] == ["*** is revoked"]
    assert "*** is revoked" in errors.describe()


def test_secrets_in_errors_of_a_client_are_starred_out():
    """The same text is reported as an error."""
    errors = ReportedErrors(SECRETS)
    errors.on_error(KafkaError(KafkaError._AUTHENTICATION, "got s3cret: Basic YXBwOnMzY3JldA=="))

    assert "got ***: Basic ***" in errors.describe()


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


def test_partitions_without_a_leader_are_passed_once(caplog):
    """Not each of the thousand that a sink writes to, for as long as a broker comes back."""
    for topic in range(1_000):
        client_log.warning(
            "METADATAUPDATE [app#producer-1] [thrd:main]: Partition t-%d(/zObBR+qdqvug)[%d]: new leader-1 not found in cache",
            topic, topic % 3,
        )  # fmt: skip

    assert len(caplog.records) == 1

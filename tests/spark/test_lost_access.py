"""A login, a right or a certificate that is gone ends a query for good: rows of the table in docs/operating.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.kafka.secured import Secured, by_token, secured_broker
from tests.spark.conftest import eventually, run_to_end
from tests.spark.streams import Batches, message, read
from tests.spark.supervised import supervised_end

pytestmark = pytest.mark.long("restarts a broker, and waits until logins fail")

SCRAM = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)


def properties(given: dict[str, str]) -> dict[str, str]:
    """As options."""
    return {f"properties.{name}": value for name, value in given.items()}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with logins, rights and certificates."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as secured:
        yield secured


def a_password(secured: Secured, user: str, password: str) -> None:
    """Gives a user a password, which is the only one from then on."""
    change = UserScramCredentialUpsertion(user, SCRAM, password.encode())
    for future in secured.broker.admin.alter_user_scram_credentials([change]).values():
        future.result()


def test_a_password_that_was_changed(spark: SparkSession, secured: Secured, tmp_path: Path) -> None:
    """The query ends when it has to log in again; with the new password it goes on from its checkpoint."""
    topic, file, sink = secured.broker.topic(), tmp_path / "secrets", Batches(tmp_path / "batches")
    user = secured.user(("READ", "TOPIC", topic))
    a_password(secured, user, "old")
    file.write_text("password = old")
    secured.broker.produce(topic, message(1))
    given = properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": f"${{file:{file}:password}}",
            "bootstrap.servers": secured.kafka.address("SASL_PLAINTEXT"),
        }
    )
    frame = read(spark, secured.broker, topic, **given)

    def start() -> StreamingQuery:
        query = sink.start(frame, processingTime="0 seconds")
        eventually(sink.all, "the first message")
        a_password(secured, user, "new")
        secured.kafka.stop()  # a broker that restarts is what connections end with
        secured.kafka.start()
        return query

    end = supervised_end(start)
    file.write_text("password = new")
    secured.broker.produce(topic, message(2))
    run_to_end(sink.start(frame))

    assert end.error == "BrokerError"
    assert "uthentication" in end.text
    assert "the credentials ('properties.sasl.*')" in end.text
    assert [row[0] for row in sink.all()] == [1, 2]


def test_rights_that_were_taken_away(spark: SparkSession, secured: Secured, tmp_path: Path) -> None:
    """The text names the topic, and where it is said which rights are needed."""
    topic, sink = secured.broker.topic(), Batches(tmp_path)
    user = secured.user(("READ", "TOPIC", topic))
    a_password(secured, user, "its own")
    secured.broker.produce(topic, message(1))
    given = properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": "its own",
            "bootstrap.servers": secured.kafka.address("SASL_PLAINTEXT"),
        }
    )

    def start() -> StreamingQuery:
        query = sink.start(read(spark, secured.broker, topic, **given), processingTime="0 seconds")
        eventually(sink.all, "the first message")
        of_the_user = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{user}", None,
            AclOperation.ANY, AclPermissionType.ANY,
        )  # fmt: skip
        for future in secured.broker.admin.delete_acls([of_the_user]).values():
            future.result()
        return query

    end = supervised_end(start)

    assert end.error == "BrokerError"
    assert "no ACL for the topic" in end.text


@pytest.mark.parametrize("what", ["a token", "a certificate"])
def test_a_login_that_is_over_when_a_query_goes_on(
    spark: SparkSession, secured: Secured, tmp_path: Path, what: str
) -> None:
    """The provider gives no more tokens to it; the broker's certificate has expired."""
    topic, sink = secured.broker.topic(), Batches(tmp_path)
    secured.broker.produce(topic, message(1))
    run_to_end(sink.start(read(spark, secured.broker, topic)))
    given = {
        "a token": {
            **by_token(secured, "a secret that was withdrawn"),
            "security.protocol": "SASL_PLAINTEXT",
            "bootstrap.servers": secured.kafka.address("SASL_PLAINTEXT"),
        },
        "a certificate": {
            **secured.trust(),
            "security.protocol": "SSL",
            "bootstrap.servers": secured.bad["EXPIRED"],
        },
    }[what]
    frame = read(spark, secured.broker, topic, **properties(given))

    end = supervised_end(lambda: sink.start(frame, processingTime="0 seconds"))

    assert end.error == "BrokerError"
    assert {"a token": "invalid_client", "a certificate": "certificate"}[what] in end.text

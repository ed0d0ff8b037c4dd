"""Tokens with real signatures, which Kafka's own validator checks against the public key: over the end of sessions, too."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyspark_upsert_kafka import LocalKafka, LocalSecurity
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options.frozen_options import Topics
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.receipts import GroupOffset
from pyspark_upsert_kafka.kafka.clients import load_sending_client
from tests import signed_tokens
from tests.conftest import Broker, broker_at
from tests.kafka.conftest import CLIENTS, WAYS, Edge, messages, numbered, turn_off
from tests.kafka.test_security import _close_idle_clients  # noqa: F401

SESSION_S = 4.0
"""A broker takes no second login within a second: where a token is renewed, more than that is left of it."""

pytestmark = pytest.mark.long("starts a broker, and waits until sessions end")


@dataclass(frozen=True)
class Signed:
    """A broker that asks for a token with a signature."""

    kafka: LocalKafka
    broker: Broker
    key: Path

    def edge(self, way: str, **more: object) -> Edge:
        """The seam over it, with tokens as `signed_tokens.token` makes them."""
        entries = {"key": self.key, "id": uuid.uuid4().hex[:8], **more}
        config = " ".join(f"{name}={value}" for name, value in entries.items())
        edge = Edge(way.split(maxsplit=1)[0], self.kafka.address("SASL_PLAINTEXT"))
        return edge.given(dict(signed_tokens.login(config)))


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signed]:
    """The broker."""
    key = signed_tokens.make_key(tmp_path_factory.mktemp("keys"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_KAFKA_OPTS", signed_tokens.broker_flags(key))
        kafka = LocalKafka(
            security=LocalSecurity(users={"ana": "x"}),
            config=signed_tokens.broker_settings(key, SESSION_S),
        )
        with kafka:
            yield Signed(kafka, broker_at(kafka.bootstrap_servers), key)


@pytest.fixture(autouse=True)
def _may_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in signed_tokens.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("way", WAYS)
def test_sessions_that_end_while_a_query_runs(
    signed: Signed, way: str, monkeypatch, caplog
) -> None:
    """Kafka ends a session after some seconds, and with its token: one sender and one reader log in again and again."""
    turn_off(monkeypatch, way)
    topic = signed.broker.topic()
    edge = signed.edge(way, life=3 * SESSION_S)
    began, found = time.monotonic(), []
    with edge.sender(topic) as sender:
        for number in range(8):
            sender.send(messages(topic, *numbered(1, number)))
            sender.flush()
            found += edge.offsets(Range(topic, 0, number, number + 1), committed=False)
            time.sleep(SESSION_S / 2)

    assert found == [*range(8)]
    assert signed.broker.pairs(topic) == numbered(8)
    assert time.monotonic() - began > 3 * SESSION_S
    assert "eyJ" not in caplog.text
    if way.startswith("librdkafka"):
        assert [each for each in caplog.messages if "SASL" in each] == []


def test_a_transaction_over_the_end_of_sessions(signed: Signed) -> None:
    """It is whole, with what it leaves for exactly once."""
    topic = signed.broker.topic()
    edge = signed.edge("librdkafka", life=3 * SESSION_S)
    sender = load_sending_client("librdkafka", "a test").transactional_sender(
        edge.all_properties(), [topic], f"x-{topic}", with_metadata=False
    )
    for number in range(3):
        sender.begin()
        sender.send(messages(topic, *numbered(2, 4 * number)))
        sender.flush()
        time.sleep(1.2 * SESSION_S)
        sender.send(messages(topic, *numbered(2, 4 * number + 2)))
        sender.commit(GroupOffset(topic, 0, number + 1, "receipt"))
    sender.close()

    assert signed.broker.pairs(topic) == numbered(12)


REFUSED = {
    "another audience": {"aud": "api"},
    "another issuer": {"iss": "https://others.example"},
    "expired": {"life": 120, "behind": 180},
    "a clock that is ten minutes behind": {"life": 300, "behind": 600},
    "another key": {},
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("case", REFUSED)
def test_a_token_that_the_broker_refuses(
    signed: Signed, case: str, client: str, tmp_path: Path, caplog
) -> None:
    """The broker says no more than that it is invalid: the error adds whose token it is, until when it is good and what the clock says."""
    more: dict[str, object] = dict(REFUSED[case])
    if case == "another key":
        more["key"] = signed_tokens.make_key(tmp_path)
    edge = signed.edge(client, **more)
    with edge.cluster() as cluster, pytest.raises(BrokerError) as error:
        cluster.topics(Topics((signed.broker.topic(),)))

    text = str(error.value)
    assert "eyJ" not in text + caplog.text
    assert "the token is from the provider 'tests.signed_tokens:token', good until 20" in text
    assert "; the clock here says 20" in text
    if client == "librdkafka":
        assert "invalid_token" in text

"""Who we are: a broker that lets only those in who have a password."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.core.options import Topics
from pyspark_upsert_kafka.kafka import patience
from pyspark_upsert_kafka.kafka.local import ports
from tests.conftest import broker_at
from tests.kafka.conftest import CLIENTS, Edge, numbered

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[LocalKafka, str]]:
    """A broker, and its address for those who say who they are."""
    servers = f"127.0.0.1:{ports.free_port()}"
    config = {
        "listeners": f"SASL_PLAINTEXT://{servers}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{MODULE} user_ana="open sesame";',
    }
    with LocalKafka(config=config) as kafka:
        yield kafka, servers


@pytest.fixture(params=CLIENTS)
def edge(request: pytest.FixtureRequest, guarded: tuple[LocalKafka, str]) -> Edge:
    """The seam over the broker that asks who we are."""
    edge = Edge(request.param, guarded[1])
    return edge.given({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"})


def test_a_name_and_a_password_open_the_door(guarded, edge):
    """As Java spells them, for asking, sending and reading."""
    topic = broker_at(guarded[0].bootstrap_servers).topic()
    edge = edge.given({"sasl.jaas.config": f'{MODULE} username="ana" password="open sesame";'})

    edge.send(topic, *numbered(3))

    assert [bounds.latest for bounds in edge.bounds(topic)] == [3]
    assert edge.offsets(Range(topic, 0, 0, 3)) == [0, 1, 2]


def test_a_changed_secret_takes_effect_at_once(guarded, edge, tmp_path, monkeypatch):
    """Clients that wait for the next task are not used with a reference that means something else now."""
    monkeypatch.setattr(patience, "LOOK_S", 1.0)
    topic = broker_at(guarded[0].bootstrap_servers).topic()
    secrets = tmp_path / "secrets.properties"
    edge = edge.given({"sasl.username": "ana", "sasl.password": f"${{file:{secrets}:password}}"})
    secrets.write_text("password = open sesame")
    edge.send(topic, *numbered(3))
    assert edge.offsets(Range(topic, 0, 0, 3)) == [0, 1, 2]

    secrets.write_text("password = open barley")

    with pytest.raises(BrokerError):
        edge.send(topic, *numbered(3))
    with pytest.raises(BrokerError):
        edge.offsets(Range(topic, 0, 0, 3))
    secrets.write_text("password = open sesame")
    assert edge.offsets(Range(topic, 0, 0, 3)) == [0, 1, 2]


def test_a_wrong_password_is_told_soon(edge):
    """Nobody waits as for a broker that is away, and the password is not shown."""
    wrong = edge.given({"sasl.username": "ana", "sasl.password": "open barley"})
    begin = time.monotonic()

    with wrong.cluster() as cluster, pytest.raises(BrokerError) as error:
        cluster.topics(Topics(("t",)))

    assert "authenticat" in str(error.value).lower()
    assert "barley" not in str(error.value)
    assert time.monotonic() - begin < 30

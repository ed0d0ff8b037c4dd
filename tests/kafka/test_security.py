"""Who we are and whom we trust: a broker that asks for a password, or has a certificate of its own."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka as ck
import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.core.options import Topics
from pyspark_upsert_kafka.kafka import timeouts
from pyspark_upsert_kafka.kafka.local import ports
from tests.conftest import broker_at
from tests.kafka.conftest import CLIENTS, Edge, messages, numbered


def address() -> str:
    """An address that nobody listens at yet."""
    return f"127.0.0.1:{ports.free_port()}"


MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[LocalKafka, str]]:
    """A broker, and its address for those who say who they are."""
    servers = address()
    config = {
        "listeners": f"SASL_PLAINTEXT://{servers}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{MODULE} user_ana="open sesame" user_bob="no rights";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:ana",
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
    monkeypatch.setattr(timeouts, "STALL_CHECK_S", 1.0)
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
    wrong = wrong.given({"default.api.timeout.ms": 3_600_000})

    with wrong.cluster() as cluster, pytest.raises(BrokerError) as error:
        cluster.topics(Topics(("t",)))

    assert "authenticat" in str(error.value).lower()
    assert "barley" not in str(error.value)


def test_the_trouble_of_one_client_is_not_that_of_another(guarded, edge):
    """A wrong password here does no harm to a write there, though its broker is away for a moment."""
    kafka, _ = guarded
    topic = broker_at(kafka.bootstrap_servers).topic()
    right = edge.given({"sasl.username": "ana", "sasl.password": "open sesame"})
    wrong = edge.given({"sasl.username": "ana", "sasl.password": "open barley"})
    with right.sender(topic) as sender:
        sender.send(messages(topic, *numbered(1)))
        sender.flush()
        with wrong.cluster() as cluster, pytest.raises(BrokerError):
            cluster.topics(Topics((topic,)))

        kafka.stop()
        again = threading.Timer(2.5, kafka.start)
        again.start()
        sender.send(messages(topic, *numbered(1, 1)))
        sender.flush()
        again.join()

    assert [bounds.latest for bounds in right.bounds(topic)] == [2]


def test_an_error_of_before_or_of_another_broker_fails_no_write(broker):
    """The client says that a certificate was refused; what is sent is delivered all the same."""
    topic = broker.topic()
    edge = Edge("librdkafka", broker.servers)
    refused = ck.KafkaError(ck.KafkaError._SSL)
    for number in range(2):
        with edge.sender(topic) as sender:
            sender._reports.errors.on_error(refused)
            sender.send(messages(topic, *numbered(1, number)))
            sender.flush()
            sender._reports.errors.on_error(refused)

    assert broker.pairs(topic) == numbered(2)


def key_store(authority: trustme.CA, path: Path) -> Path:
    """A file with a key and a certificate by this authority, as Kafka wants it."""
    certificate = authority.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(pem + certificate.cert_chain_pems[0].bytes())
    return path


@pytest.fixture(scope="module")
def certified(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[LocalKafka, str, str, Path]]:
    """A broker, its address with a certificate that can be trusted, one with another, and whom to trust."""
    folder = tmp_path_factory.mktemp("certificates")
    authority, good, bad = trustme.CA(), address(), address()
    trusted = folder / "ca.pem"
    trusted.write_bytes(authority.cert_pem.bytes())
    config = {
        "listeners": f"SSL://{good},BAD://{bad}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,BAD:SSL",
    }
    for listener, by in (("ssl", authority), ("bad", trustme.CA())):
        config[f"listener.name.{listener}.ssl.keystore.type"] = "PEM"
        config[f"listener.name.{listener}.ssl.keystore.location"] = str(
            key_store(by, folder / f"{listener}.pem")
        )
    with LocalKafka(config=config) as kafka:
        yield kafka, good, bad, trusted


of_kafka_python_ng = pytest.mark.filterwarnings("ignore:ssl.PROTOCOL_TLS is deprecated")


@of_kafka_python_ng
@pytest.mark.parametrize("client", CLIENTS)
def test_one_bad_certificate_among_brokers_does_no_harm(certified, client):
    """Most of the addresses have a certificate that is not trusted: asking, writing and reading go on."""
    kafka, good, bad, trusted = certified
    topic = broker_at(kafka.bootstrap_servers).topic()
    edge = Edge(client, f"{bad},{bad.replace('127.0.0.1', 'localhost')},{good}")
    edge = edge.given({"security.protocol": "SSL", "ssl.ca.location": trusted})

    for number in range(3):
        edge.send(topic, *numbered(1, number))
        assert [bounds.latest for bounds in edge.bounds(topic)] == [number + 1]
        assert edge.offsets(Range(topic, 0, number, number + 1)) == [number]


@of_kafka_python_ng
@pytest.mark.parametrize("client", CLIENTS)
def test_a_certificate_that_nobody_trusts_is_told_soon(certified, client):
    """Where there is no other broker: what is wrong, and where to look."""
    _, _, bad, trusted = certified
    edge = Edge(client, bad).given({"security.protocol": "SSL", "ssl.ca.location": trusted})
    begin = time.monotonic()

    with edge.cluster() as cluster, pytest.raises(BrokerError) as error:
        cluster.topics(Topics(("t",)))

    # kafka-python-ng knows no more than that the handshake failed.
    assert re.search("certificate verify failed|during handshake", str(error.value))
    assert "properties.ssl.*" in str(error.value)
    assert time.monotonic() - begin < 50


def test_what_is_not_allowed_is_told(guarded, edge):
    """Who may not see a topic hears that, from whatever is tried."""
    topic = broker_at(guarded[0].bootstrap_servers).topic()
    bob = edge.given({"sasl.username": "bob", "sasl.password": "no rights"})
    bob = bob.given({"request.timeout.ms": 2_000, "default.api.timeout.ms": 6_000})

    with bob.cluster() as cluster, pytest.raises(BrokerError, match=topic) as asking:
        cluster.topics(Topics((topic,)))
    with pytest.raises(BrokerError, match=topic) as sending:
        bob.send(topic, *numbered(1))
    with pytest.raises(BrokerError, match=topic) as reading:
        bob.offsets(Range(topic, 0, 0, 1))

    for error in (asking, sending, reading):
        assert "authoriz" in str(error.value).lower()

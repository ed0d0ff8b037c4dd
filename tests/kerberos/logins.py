"""Kerberos, with kafka-python and a KDC of our own: ``make test-kerberos``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyspark_upsert_kafka import BrokerError, LocalKafka, OptionError
from pyspark_upsert_kafka.core.options.frozen_options import Topics
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.local import ports
from tests.conftest import Broker, broker_at
from tests.kafka.conftest import Edge, numbered
from tests.kerberos.kdc import REALM, Realm

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True)
class Guarded:
    """A broker that takes tickets of a realm, and lets ana do everything.

    Args:
        realm: The realm.
        broker: What tests do with the broker by plain clients.
        servers: Where it takes tickets.
        keytab: The key of ana.
    """

    realm: Realm
    broker: Broker
    servers: str
    keytab: Path

    def edge(self, client: str = "kafka-python", **more: str) -> Edge:
        """The seam, as Flink's tables spell a login by ticket."""
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.jaas.config": f'{MODULE} useTicketCache=true serviceName="kafka";',
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        return Edge(client, self.servers).given(properties)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The broker."""
    with Realm(tmp_path_factory.mktemp("realm")) as realm, pytest.MonkeyPatch.context() as patch:
        service = realm.keytab("kafka/127.0.0.1")
        servers = f"127.0.0.1:{ports.free_port()}"
        login = (
            f'useKeyTab=true storeKey=true keyTab="{service}" principal="kafka/127.0.0.1@{REALM}";'
        )
        config = {
            "listeners": f"SASL_PLAINTEXT://{servers}",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": f"{MODULE} {login}",
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:ANONYMOUS;User:ana",
        }
        patch.setenv("LOCAL_KAFKA_OPTS", f"-Djava.security.krb5.conf={realm.config}")
        patch.setenv("KRB5_CONFIG", str(realm.config))
        with LocalKafka(config=config) as kafka:
            broker = broker_at(kafka.bootstrap_servers)
            yield Guarded(realm, broker, servers, realm.keytab("ana"))


@pytest.fixture(autouse=True)
def tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where this test's tickets are; there are none."""
    cache = f"FILE:{tmp_path / 'tickets'}"
    monkeypatch.setenv("KRB5CCNAME", cache)
    monkeypatch.delenv("KRB5_CLIENT_KTNAME", raising=False)
    return cache


def check(guarded: Guarded) -> None:
    """Whether asking, sending, reading and finding topics go."""
    topic = guarded.broker.topic()
    edge = guarded.edge()

    edge.send(topic, *numbered(3))

    assert [bounds.latest for bounds in edge.bounds(topic, committed=False)] == [3]
    assert edge.offsets(Range(topic, 0, 0, 3), committed=False) == [0, 1, 2]
    with edge.cluster() as cluster:
        assert list(cluster.topics(Topics(pattern=re.compile(topic)))) == [topic]


def test_a_ticket_of_kinit_opens_the_door(guarded: Guarded, tickets: str) -> None:
    """The ticket is found where Kerberos keeps it."""
    guarded.realm.run("kinit", "-k", "-t", str(guarded.keytab), "ana", KRB5CCNAME=tickets)

    check(guarded)


def test_a_keytab_opens_the_door(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """MIT Kerberos gets a ticket by itself, and a new one when that expires."""
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", f"FILE:{guarded.keytab}")

    check(guarded)


def test_without_a_ticket_it_is_told_what_is_missing(guarded: Guarded) -> None:
    """In the words of Kerberos, and soon."""
    edge = guarded.edge(request_timeout_ms="2000", default_api_timeout_ms="10000")

    with pytest.raises(BrokerError, match=r"(?i)credential|ticket"):
        edge.bounds("t")


def test_librdkafka_says_that_it_has_no_kerberos(guarded: Guarded) -> None:
    """Its wheels are built without; what has it is named."""
    with pytest.raises(
        OptionError, match=r"librdkafka has no Kerberos.*'kafka\.client' to 'kafka-python'"
    ):
        guarded.edge("librdkafka").bounds("t")

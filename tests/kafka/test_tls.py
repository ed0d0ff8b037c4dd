"""TLS: who the broker says it is must be true, whichever client asks."""

from __future__ import annotations

import re

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.positions.offsets import Range
from tests.kafka.conftest import CLIENTS, Edge, numbered
from tests.kafka.secured import Secured, errors_of


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """The client's name."""
    return str(request.param)


def identity(secured: Secured) -> dict[str, str]:
    """Whom ana trusts, and who she is."""
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": str(secured.certificates.authority),
        "ssl.keystore.location": str(secured.certificates.issue(user="ana")),
    }


@pytest.mark.long("waits until certificates are refused for good")
def test_a_certificate_that_is_not_good_is_refused(secured, client):
    """Expired, of another host, of an authority that is not known, or none: the error says which."""
    me, good = identity(secured), secured.kafka.address("SSL")
    brief = {"request.timeout.ms": 2_000, "default.api.timeout.ms": 10_000}
    stranger = {"ssl.ca.location": str(secured.strangers.authority)}
    said = {
        "EXPIRED": "certificate (has )?expired",
        "ELSEWHERE": "(?i)hostname mismatch|certificate is not valid for|IP address mismatch",
        "UNKNOWN": "certificate verify failed",
        "stranger": "certificate verify failed",
        "plain": "",
    }
    edges = {
        **{name: Edge(client, address) for name, address in secured.bad.items()},
        "stranger": Edge(client, good).given(stranger),
        "plain": Edge(client, good).given({"security.protocol": "PLAINTEXT"}),
    }
    edges = {
        name: edge.given({**me, **brief, **dict(edge.properties)}) for name, edge in edges.items()
    }
    actions = {name: lambda edge=edge: edge.bounds("t") for name, edge in edges.items()}

    for name, error in errors_of(actions).items():
        assert isinstance(error, BrokerError), (name, error)
        assert edges[name].servers in str(error)
        assert re.search(said[name], str(error)), (name, error)
        assert name == "plain" or "properties.ssl.*" in str(error)


def test_one_bad_certificate_among_brokers_does_no_harm(secured, client):
    """Most of the addresses have a certificate that is not trusted: asking, writing and reading go on."""
    topic = secured.broker.topic()
    servers = f"{secured.bad['UNKNOWN']},{secured.bad['EXPIRED']},{secured.kafka.address('SSL')}"
    edge = Edge(client, servers).given(identity(secured))

    for number in range(3):
        edge.send(topic, *numbered(1, number))
        assert [bounds.latest for bounds in edge.bounds(topic, committed=False)] == [number + 1]
        assert edge.offsets(Range(topic, 0, number, number + 1), committed=False) == [number]


def test_the_name_of_the_host_may_be_left_unchecked(secured, client):
    """As in Java, for who asks for it: who signed the certificate is checked all the same."""
    unchecked = {**identity(secured), "ssl.endpoint.identification.algorithm": ""}
    edge = Edge(client, secured.bad["ELSEWHERE"]).given(unchecked)
    topic = secured.broker.topic()

    assert [bounds.latest for bounds in edge.bounds(topic, committed=False)] == [0]

"""A client that speaks another security protocol than the broker's port is told which one that is."""

from __future__ import annotations

import socket

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options.frozen_options import Topics
from pyspark_upsert_kafka.kafka.port_protocol import protocol_hint, spoken_protocol
from tests.kafka.conftest import CLIENTS, Edge
from tests.kafka.secured import Secured

BUSY_S = 120.0
"""What a broker may need for an answer while the machine is busy, in seconds."""

PROTOCOLS = ["PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL"]


def address(secured: Secured, protocol: str) -> str:
    """The broker's address for a security protocol."""
    kafka = secured.kafka
    return kafka.bootstrap_servers if protocol == "PLAINTEXT" else kafka.address(protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_a_port_speaks(secured: Secured, protocol: str) -> None:
    """Asked without any credentials; who speaks it already gets no hint."""
    servers = address(secured, protocol)
    host, _, port = servers.rpartition(":")

    assert spoken_protocol(host, int(port), BUSY_S) == protocol
    assert protocol_hint(f"nowhere.invalid:1, {servers}", protocol, BUSY_S) == ""
    for other in {*PROTOCOLS} - {protocol}:
        expected = f"set 'properties.security.protocol' to '{protocol}'."
        assert protocol_hint(servers, other, BUSY_S).endswith(expected)


def test_a_port_that_is_no_broker() -> None:
    """Nothing is said of it: one that is closed, and one that is silent."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert spoken_protocol("127.0.0.1", port, 0.2) is None
    assert spoken_protocol("127.0.0.1", port) is None
    assert protocol_hint("no address", "") == ""


@pytest.mark.long(
    "a port has two seconds to say what it speaks, which may be too few on a busy machine"
)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SSL"])
def test_a_client_without_a_protocol(secured: Secured, client: str, protocol: str) -> None:
    """Who has forgotten the option is told its value."""
    times = {"request.timeout.ms": 1_000, "default.api.timeout.ms": 3_000}
    edge = Edge(client, address(secured, protocol)).given(times)
    with (
        edge.cluster() as cluster,
        pytest.raises(BrokerError, match=f"'properties.security.protocol' to '{protocol}'"),
    ):
        cluster.topics(Topics(("t",)))

"""The release of a broker, which it tells before a login."""

from __future__ import annotations

import socket
import threading

import pytest

from pyspark_upsert_kafka.kafka.connections.broker_version import oldest_release
from pyspark_upsert_kafka.kafka.local.ports import free_port
from tests.conftest import Broker
from tests.kafka.secured import Secured
from tests.kafka.test_port_protocol import BUSY_S, address


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_broker_tells_its_release(secured: Secured, protocol: str) -> None:
    """Over each protocol, without credentials."""
    assert oldest_release([address(secured, protocol)], protocol, BUSY_S) == "4.3"


def test_a_broker_that_wants_a_certificate_does_not_tell(secured: Secured) -> None:
    """It is not known then, and that is no error."""
    assert oldest_release([address(secured, "SSL")], "SSL", BUSY_S) is None


def test_one_that_does_not_answer_makes_it_unknown(broker: Broker) -> None:
    """The oldest of all is not known if one does not tell: nobody listens there, or it is no broker."""
    assert oldest_release([broker.servers], "", BUSY_S) == "4.3"
    assert oldest_release([broker.servers, f"127.0.0.1:{free_port()}"], "") is None
    assert oldest_release([], "") is None
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_say, args=(server, b"HTTP/1.1 400 Bad Request\r\n\r\n")).start()
        assert oldest_release([f"127.0.0.1:{server.getsockname()[1]}"], "") is None


def _say(server: socket.socket, text: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(100)
        connection.sendall(text)

"""kafka-python's log: each client gets the errors of its own connections."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from kafka.errors import TopicAuthorizationFailedError

from pyspark_upsert_kafka.kafka.kafka_python.errors import (
    ClientId,
    describe_error,
    is_about_security,
)

log = logging.getLogger("kafka.conn")


def connection(client_id: str) -> SimpleNamespace:
    """A connection as the library makes it: what the client was given is in its configuration."""
    return SimpleNamespace(config={"client_id": client_id})


def test_each_client_gets_the_errors_of_its_own_connections():
    """Though two clients have equal ids, and others are in the process too."""
    ours, others = ClientId("driver"), ClientId("driver")
    assert ours == others

    log.error("%s: Closing connection. %s", connection(ours), OSError("gone"))
    log.error("%s: Closing connection. %s", connection("driver"), OSError("someone else's"))
    log.error("no arguments")

    assert "gone" in ours.errors.describe()
    assert "someone" not in ours.errors.describe()
    assert others.errors.describe() == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<BrokerConnection node_id=1 <authenticating> [...]>: Closing connection. gone", True),
        ("<BrokerConnection node_id=1 <handshake> [...]>: Closing connection. gone", True),
        ("<BrokerConnection node_id=1 <connected> [...]>: Closing connection. gone", False),
        ("Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", True),
        ("Authentication failed for user ana", True),
        ("Connect attempt to <...> returned error 111. Disconnecting.", False),
    ],
)
def test_what_is_about_security(text, expected):
    """A refused login or certificate; a broker may also just hang up in the middle of a login."""
    assert is_about_security(text) == expected


@pytest.mark.parametrize(
    ("sasl", "failed", "text", "expected"),
    [
        (True, True, "socket disconnected", True),
        (True, False, "socket disconnected", False),  # it was logged in: a restart
        (False, True, "socket disconnected", False),
        (True, True, "Connection refused", False),
    ],
)
def test_a_broker_that_hangs_up_in_the_middle_of_a_login(sasl, failed, text, expected):
    """kafka-python 3 says no more than that it is gone; its connection knows that it was no login yet."""
    client_id = ClientId("driver")
    lost = connection(client_id)
    lost.sasl_enabled = sasl
    lost.init_future = SimpleNamespace(failed=lambda: failed)

    log.error("%s: Connection lost: %s", lost, OSError(text))

    assert ("Lost during authentication" in client_id.errors.describe()) == expected


@pytest.mark.parametrize(
    "name", ["kafka.admin.client", "kafka.net.connection", "kafka.protocol.parser"]
)
def test_logins_are_not_logged_as_they_are_sent(name, caplog):
    """kafka-python 3 does at DEBUG, password and all; what it says at other levels is shown."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger(name).debug("Sending %s", b"\0ana\0geheim")
    logging.getLogger(name).info("Connected")

    assert [record.getMessage() for record in caplog.records] == ["Connected"]


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (set("users"), "[Error 29] TopicAuthorizationFailedError (the user has no ACL"),
        ("users", "[Error 29] TopicAuthorizationFailedError: users (the user has no ACL"),
    ],
)
def test_the_letters_of_a_topics_name_are_not_shown(argument, expected):
    """kafka-python-ng's consumer makes a set of the name; who reads knows which topic it was."""
    assert describe_error(TopicAuthorizationFailedError(argument)).startswith(expected)

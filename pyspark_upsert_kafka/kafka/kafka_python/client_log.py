"""The errors in kafka-python's log: only there it says why a connection was lost."""

from __future__ import annotations

import logging
import re
from typing import Any

from pyspark_upsert_kafka.kafka.connections.client_errors import ClientErrors

_SECURITY = re.compile(
    "authentication ?failed|lost during authentication|certificate verify failed|hostname mismatch|SaslMechanism|sasl_mechanism"
    # A broker that refuses a login may just hang up; so may one that restarts, but not for long.
    # This is what kafka-python-ng says then.
    "|<(authenticating|handshake)>.*: Closing connection",
    re.IGNORECASE,
)

_VAGUE = re.compile("during handshake|<(authenticating|handshake)>|socket disconnected")
"""A connection was lost on the way to being secure, and it is not said why."""

_LOST_IN_LOGIN = "Lost during authentication, as when a broker refuses the credentials"


class ClientId(str):
    """A client's id that holds the client's errors.

    Every connection has the id in its configuration, and a record of the library's log has the
    connection among its arguments: so each client gets the errors of its own connections only.
    """

    __slots__ = ("errors",)

    errors: ClientErrors

    def __new__(cls, text: str) -> ClientId:  # noqa: PYI034 - typing.Self needs Python 3.11
        """An id without errors."""
        self = super().__new__(cls, text)
        self.errors = ClientErrors()
        return self


def errors_of(client: Any) -> ClientErrors:
    """The errors of a consumer or producer that was opened with a `ClientId`."""
    client_id: ClientId = client.config["client_id"]
    return client_id.errors


def is_about_security(text: str) -> bool:
    """Whether it says that a login or a certificate was refused."""
    return _SECURITY.search(text) is not None


def _disconnected_in_login(connection: Any, text: str) -> bool:
    """Whether a broker hung up in the middle of a login: kafka-python 3 says no more than that it is gone."""
    login = getattr(connection, "init_future", None)
    return (
        login is not None
        and login.failed()
        and bool(connection.sasl_enabled)
        and "socket disconnected" in text
    )


class _ErrorCollector(logging.Handler):
    """Adds what the library logs of a connection to the errors of its client."""

    def emit(self, record: logging.LogRecord) -> None:
        """Takes note of a warning about a connection."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        for argument in arguments:
            config = getattr(argument, "config", None)
            client_id = config.get("client_id") if isinstance(config, dict) else None
            if isinstance(client_id, ClientId):
                text = record.getMessage()
                if "<authenticating>" in text or _disconnected_in_login(argument, text):
                    text = f"{_LOST_IN_LOGIN}: {text}"
                is_vague = _VAGUE.search(text) is not None
                client_id.errors.add(text, security=is_about_security(text), vague=is_vague)


def _holds_no_secret(record: logging.LogRecord) -> bool:
    """Whether a record can be shown: at DEBUG kafka-python 3 prints its arguments, and logins as they are sent."""
    return record.levelno > logging.DEBUG


logging.getLogger("kafka").addHandler(_ErrorCollector(logging.WARNING))
for _name in ("kafka.admin.client", "kafka.net.connection", "kafka.protocol.parser"):
    logging.getLogger(_name).addFilter(_holds_no_secret)

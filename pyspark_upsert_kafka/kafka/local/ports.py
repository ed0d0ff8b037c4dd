"""Ports of this machine: whether one can be used, and finding a free one."""

from __future__ import annotations

import os
import secrets
import socket

from pyspark_upsert_kafka.core.errors import BrokerError

HOST = "127.0.0.1"

# Below the range from which systems take the ports of outgoing connections: there, a client that
# calls a stopped broker again and again could be given the broker's own port.
_PORTS = range(20_000, 32_000)

_SHARE = 100
"""Ports from which one process takes its own, if it can: no other gives them away while a broker that has one is stopped."""

_given: set[int] = set()
"""Ports that this process has taken; none is given twice as long as there are others."""


def free_port() -> int:
    """A port that nobody listens on.

    Raises:
        BrokerError: There is none.
    """
    return free_ports(1)[0]


def free_ports(count: int, unlike: int | None = None) -> list[int]:
    """Ports that nobody listens on, each another one.

    Args:
        count: How many.
        unlike: A port that is already meant for something else.

    Raises:
        BrokerError: There are fewer.
    """
    found: list[int] = []
    shares = len(_PORTS) // _SHARE
    own = _PORTS[os.getpid() % shares * _SHARE :][:_SHARE]
    rest = [_PORTS[secrets.randbelow(len(_PORTS))] for _ in range(1000)]
    for port in [*(port for port in own if port not in _given), *rest]:
        if port != unlike and port not in found and _bind_error(port) is None:
            found.append(port)
            _given.add(port)
            if len(found) == count:
                return found
    raise BrokerError(f"Too few free ports on {HOST} from {_PORTS.start} to {_PORTS.stop - 1}.")


def refuse_unusable(port: int) -> None:
    """Says why a port cannot be listened on, if it cannot.

    Raises:
        BrokerError: Another program has it, or it may not be used.
    """
    error = _bind_error(port)
    if error is not None:
        raise BrokerError(
            f"Port {port} on {HOST} cannot be used ({error.strerror}). End the program that uses "
            "it, choose another port, or leave the port out to get a free one."
        )


def _bind_error(port: int) -> OSError | None:
    with socket.socket() as probe:
        # As Java does: connections of a broker that has stopped do not keep its port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            return error
    return None

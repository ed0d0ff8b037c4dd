"""Ports of this machine: whether one can be used, and finding a free one."""

from __future__ import annotations

import os
import secrets
import socket
from collections import deque
from collections.abc import Iterator

from pyspark_upsert_kafka.core.errors import BrokerError

HOST = "127.0.0.1"

# Below the range from which systems take the ports of outgoing connections: there, a client that
# calls a stopped broker again and again could be given the broker's own port.
_PORTS = range(20_000, 32_000)

_SHARES = [_PORTS[begin:][:100] for begin in range(0, len(_PORTS), 100)]
"""A process takes its ports from shares that no other process has: a stopped broker finds its port free again."""

_left: deque[int] = deque()
"""Ports of the shares of this process that it has not given; none is given twice."""

if hasattr(os, "register_at_fork"):
    # A forked process takes a share of its own.
    os.register_at_fork(after_in_child=_left.clear)


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
    for port in _not_given():
        if port != unlike and _bind_error(port) is None:
            found.append(port)
            if len(found) == count:
                return found
    raise BrokerError(f"Too few free ports on {HOST} from {_PORTS.start} to {_PORTS.stop - 1}.")


def _not_given() -> Iterator[int]:
    """Ports of the shares of this process; of any share, if other processes have all."""
    while _left or _take_share():
        yield _left.popleft()
    yield from (secrets.choice(_PORTS) for _ in range(1000))


def _take_share() -> bool:
    first = os.getpid() % len(_SHARES)
    for share in (*_SHARES[first:], *_SHARES[:first]):
        claim = socket.socket()
        try:
            claim.bind((HOST, share[0]))
        except OSError:
            claim.close()
        else:
            # Bound as long as this process lives: others see that the share is taken.
            claim.detach()
            _left.extend(share[1:])
            return True
    return False


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

"""A proxy in front of a real broker that loses, delays, cuts, truncates or alters answers, by the kind of the request."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, IntEnum


class Api(IntEnum):
    """The requests of Kafka's protocol that are meant here, by their numbers."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    DESCRIBE_CLUSTER = 60


_FLEXIBLE_FROM = {
    Api.PRODUCE: 9, Api.FETCH: 12, Api.LIST_OFFSETS: 6, Api.METADATA: 9, Api.OFFSET_COMMIT: 8, Api.OFFSET_FETCH: 6,
    Api.FIND_COORDINATOR: 3, Api.INIT_PRODUCER_ID: 2, Api.ADD_PARTITIONS_TO_TXN: 3, Api.ADD_OFFSETS_TO_TXN: 3,
    Api.END_TXN: 3, Api.TXN_OFFSET_COMMIT: 3, Api.DESCRIBE_CONFIGS: 4,
}  # fmt: skip
"""From which version on the header of an answer ends with a byte for tags, and lists begin with one for their length."""

_NAMING_BROKERS = (Api.METADATA, Api.FIND_COORDINATOR, Api.DESCRIBE_CLUSTER)

_ERROR_FIRST = frozenset({
    Api.INIT_PRODUCER_ID, Api.ADD_OFFSETS_TO_TXN, Api.END_TXN, Api.FIND_COORDINATOR, Api.FETCH,
})  # fmt: skip
"""Their answers have an error after the time for which the client is throttled."""


_THROTTLING_FROM = {Api.FIND_COORDINATOR: 1, Api.FETCH: 7}
"""From which version on they do; a fetch has errors of partitions alone before."""


class Kind(Enum):
    """What happens to an answer."""

    LOST = "lost"
    LATE = "late"
    CUT = "connection cut"
    TRUNCATED = "truncated"
    ERROR = "error"
    HUNG = "broker hangs"


@dataclass
class Fault:
    """What happens to the first answers to a kind of request.

    Args:
        api: The request.
        kind: What happens.
        code: The error of Kafka's protocol that the answer gets.
        seconds: For how long an answer, or from then on the whole broker, is late.
        times: To so many answers.
        after: So many answers are left alone before.
        seen: How many it happened to.
    """

    api: Api
    kind: Kind
    code: int = 0
    seconds: float = 0.0
    times: int = 1
    after: int = 0
    seen: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def takes(self, api: int) -> bool:
        """Whether it happens to this answer."""
        with self.lock:
            if api != self.api or self.seen >= self.times:
                return False
            if self.after:
                self.after -= 1
                return False
            self.seen += 1
            return True


class FaultProxy:
    """A proxy for one broker, which the broker's answers name in its place.

    Args:
        servers: The broker's host and port.
    """

    topic: str
    """The topic that gets the error of an answer that has one for each topic."""

    def __init__(self, servers: str) -> None:
        host, _, port = servers.partition(":")
        self._broker = host, int(port)
        self._listener = socket.create_server((host, 0))
        self._port = self._listener.getsockname()[1]
        self.servers = f"{host}:{self._port}"
        self._faults: list[Fault] = []
        self._silent_until = 0.0
        self._is_closed = False
        self._open: list[socket.socket] = [self._listener]
        self.sending = threading.Lock()
        """Held by who sends to a client."""
        self.topic = ""
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def fault(self, fault: Fault) -> Iterator[Fault]:
        """Has a fault happen as long as the context lasts."""
        self._faults.append(fault)
        try:
            yield fault
        finally:
            self._faults.remove(fault)
            self._silent_until = 0.0

    def close(self) -> None:
        """Ends all connections, those too that come at this moment."""
        self._is_closed = True
        for each in self._open:
            end(each)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._broker)
                self._open += [client, broker]
                if self._is_closed:
                    end(client, broker)
                    break
                asked: dict[int, tuple[int, int]] = {}
                for pump in (self._pass_requests, self._pass_answers):
                    threading.Thread(target=pump, args=(client, broker, asked), daemon=True).start()

    def _pass_requests(
        self, client: socket.socket, broker: socket.socket, asked: dict[int, tuple[int, int]]
    ) -> None:
        for frame in frames(client):
            api, version, correlation = struct.unpack_from(">hhi", frame)
            asked[correlation] = api, version
            with suppress(OSError):
                broker.sendall(struct.pack(">i", len(frame)) + frame)
        end(client, broker)

    def _pass_answers(
        self, client: socket.socket, broker: socket.socket, asked: dict[int, tuple[int, int]]
    ) -> None:
        for frame in frames(broker):
            api, version = asked.pop(int.from_bytes(frame[:4], "big"), (-1, 0))
            passed = self._after_faults(api, version, frame)
            if passed is None:
                continue
            time.sleep(max(0.0, self._silent_until - time.monotonic()))
            whole = struct.pack(">i", len(frame)) + passed
            try:
                with self.sending:
                    client.sendall(whole)
            except OSError:
                break
            if len(passed) < len(frame):
                break
        end(client, broker)

    def _after_faults(self, api: int, version: int, frame: bytes) -> bytes | None:
        """What is passed on of an answer: None = nothing; less than all = the connection ends with it."""
        if api in _NAMING_BROKERS:
            frame = frame.replace(struct.pack(">i", self._broker[1]), struct.pack(">i", self._port))
        for fault in self._faults:
            if not fault.takes(api):
                continue
            if fault.kind is Kind.LOST:
                return None
            if fault.kind is Kind.CUT:
                return b""
            if fault.kind is Kind.TRUNCATED:
                return frame[: len(frame) // 2]
            if fault.kind is Kind.LATE:
                time.sleep(fault.seconds)
            elif fault.kind is Kind.HUNG:
                self._silent_until = time.monotonic() + fault.seconds
            else:
                frame = self._with_error(Api(api), version, frame, fault.code)
        return frame

    def _with_error(self, api: Api, version: int, frame: bytes, code: int) -> bytes:
        """The answer with an error in the place where it has one."""
        is_flexible = version >= _FLEXIBLE_FROM[api]
        if api in _ERROR_FIRST and version >= _THROTTLING_FROM.get(api, 0):
            at = 4 + is_flexible + 4
        elif api is Api.FIND_COORDINATOR:
            at = 4
        elif api is Api.DESCRIBE_CONFIGS:
            at = 4 + is_flexible + 4 + (1 if is_flexible else 4)
        else:
            found = frame.find(self.topic.encode())
            if found < 0:
                return frame
            if api is Api.METADATA:
                at = found - (1 if is_flexible else 2) - 2
            else:
                at = found + len(self.topic) + (1 if is_flexible else 4) + 4
                if (
                    api is Api.OFFSET_FETCH
                ):  # before it come an offset, an epoch from version 5 on, and no metadata
                    at += 8 + (4 if version >= 5 else 0) + (1 if is_flexible else 2)
        return frame[:at] + struct.pack(">h", code) + frame[at + 2 :]


def frames(connection: socket.socket) -> Iterator[bytes]:
    """What comes over a connection, without the length that each part begins with."""
    with suppress(OSError, ValueError), connection.makefile("rb") as stream:
        while len(head := stream.read(4)) == 4:
            size = int.from_bytes(head, "big")
            frame = stream.read(size)
            if len(frame) < size:
                return
            yield frame


def end(*connections: socket.socket) -> None:
    """Ends connections."""
    for each in connections:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()

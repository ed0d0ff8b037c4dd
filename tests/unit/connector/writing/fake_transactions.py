"""Transactions in memory that fence and abort as Kafka's do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError
from pyspark_upsert_kafka.core.receipts import GroupOffset
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages


@dataclass
class FakeKafka:
    """Committed values, the receipts of groups, and how often each transactional id was opened.

    One method fails when told to, and something else may happen right before one.
    """

    values: list[bytes | None] = field(default_factory=list)
    receipts: dict[str, GroupOffset] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    fails: str = ""
    retention_s: float | None = None
    meanwhile: dict[str, Callable[[], object]] = field(default_factory=dict)

    def open(self, transactional_id: str) -> FakeTransaction:
        """A sender; whatever had the id before is fenced off."""
        self.log.append(f"open {transactional_id.removeprefix('sink-query-')}")
        self.epochs[transactional_id] = self.epochs.get(transactional_id, 0) + 1
        return FakeTransaction(self, transactional_id, self.epochs[transactional_id])


@dataclass
class FakeTransaction:
    """One sender; one of its methods fails when the cluster says so."""

    kafka: FakeKafka
    id: str
    epoch: int
    sent: list[bytes | None] = field(default_factory=list)

    def _do(self, name: str) -> None:
        self.kafka.meanwhile.pop(name, lambda: None)()
        self.kafka.log.append(name)
        if name == self.kafka.fails:
            raise DeliveryError("t", 0, b"k", f"{name} fails")

    def committed(self, topic: str, group: str | None = None) -> GroupOffset | None:
        """The receipt of the group with the name of the id, or of another one."""
        self._do("look")
        found = self.kafka.receipts.get(group or self.id)
        return found if found and found.topic == topic else None

    def committed_anywhere(self) -> GroupOffset | None:
        """The same: groups here have one receipt each."""
        return self.kafka.receipts.get(self.id)

    def groups(self, prefix: str) -> list[str]:
        """Those that have receipts."""
        return [name for name in self.kafka.receipts if name.startswith(prefix)]

    def retention_s(self) -> float | None:
        """What the cluster says."""
        return self.kafka.retention_s

    def begin(self) -> None:
        """Takes note."""
        self._do("begin")

    def send(self, messages: Messages) -> None:
        """Holds the messages back until they are committed."""
        self._do("send")
        self.sent += messages.values.to_pylist()

    def flush(self) -> None:
        """Takes note."""
        self._do("flush")

    def commit(self, offset: GroupOffset) -> None:
        """Commits, or is fenced; ``answer`` fails after the commit."""
        self._do("commit")
        if self.epoch < self.kafka.epochs[self.id]:
            raise BrokerError("fenced")
        self.kafka.values += self.sent
        self.kafka.receipts[self.id] = offset
        if self.kafka.fails == "answer":
            raise BrokerError("no answer")

    def close(self) -> None:
        """Takes note."""
        self._do("close")

"""A writer that changes a table all the time, and records each change."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from random import Random

from confluent_kafka import KafkaError, Message

from tools.faults import produce
from tools.local_topics import producer

_PADDING = "x" * 60


@dataclass(frozen=True)
class Change:
    """A change that the broker has: an offset, a key, and the number of its row; None = a delete."""

    offset: int
    key: int
    number: int | None


@dataclass
class Model:
    """All committed changes of a topic, by partition, in the order of their offsets."""

    changes: dict[int, list[Change]] = field(default_factory=dict)

    def at(self, partition: int, offset: int) -> dict[int, int | None]:
        """The last change of each key of a partition before an offset."""
        return {
            change.key: change.number
            for change in self.changes.get(partition, [])
            if change.offset < offset
        }

    def between(self, partition: int, begin: int, end: int) -> list[Change]:
        """The changes between two offsets."""
        found = self.changes.get(partition, [])
        return [change for change in found if begin <= change.offset < end]


class Writer:
    """Upserts, deletes and inserts again, in transactions or not; some transactions are aborted.

    Args:
        servers: The bootstrap servers.
        topic: The topic.
        keys: How many keys there are.
        random: Where its choices come from.
        transactional: Whether it writes in transactions.
    """

    def __init__(
        self, servers: str, topic: str, keys: int, random: Random, *, transactional: bool
    ) -> None:
        self._topic, self._keys, self._random = topic, keys, random
        self._transactional = transactional
        more = {"transactional.id": topic} if transactional else {}
        self._producer = producer(servers, **{"linger.ms": 0, **more})
        if transactional:
            self._producer.init_transactions()
        self._number = 0
        self._sent: list[tuple[int, Change]] = []
        self._model = Model()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None

    def fill(self) -> None:
        """Writes each key, some of them twice."""
        keys = [*range(self._keys), *self._random.choices(range(self._keys), k=self._keys)]
        for begin in range(0, len(keys), 500):
            self._write([(key, False) for key in keys[begin : begin + 500]], commit=True)

    def start(self) -> None:
        """Begins to change rows, until `stop`."""
        self._thread.start()

    def stop(self) -> Model:
        """Ends; returns what was written.

        Raises:
            BaseException: What ended it before.
        """
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        for changes in self._model.changes.values():
            changes.sort(key=lambda change: change.offset)
        return self._model

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                count = self._random.choice([1, 5, 50, 200])
                keys = self._random.choices(range(self._keys), k=count)
                deletes = self._random.choice([0.0, 0.02, 0.2])
                self._write(
                    [(key, self._random.random() < deletes) for key in keys],
                    commit=self._random.random() < 0.9,
                )
                time.sleep(self._random.choice([0.0, 0.002, 0.02]))
        except BaseException as error:  # noqa: BLE001 - told by `stop`
            self._error = error

    def _write(self, changes: list[tuple[int, bool]], *, commit: bool) -> None:
        if self._transactional:
            self._producer.begin_transaction()
        for key, is_delete in changes:
            self._send(key, None if is_delete else self._number)
            self._number += 1
        self._producer.flush()
        if self._transactional and not commit:
            self._producer.abort_transaction()
            self._sent.clear()
        elif self._transactional:
            self._producer.commit_transaction()
        for partition, change in self._sent:
            self._model.changes.setdefault(partition, []).append(change)
        self._sent.clear()

    def _send(self, key: int, number: int | None) -> None:
        def sent(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                raise RuntimeError(f"A change was not sent: {error}")
            partition, offset = message.partition(), message.offset()
            self._sent.append((int(partition or 0), Change(int(offset or 0), key, number)))

        value = (
            None if number is None else json.dumps({"id": key, "n": number, "padding": _PADDING})
        )
        produce(
            self._producer, self._topic, key=json.dumps({"id": key}), value=value, on_delivery=sent
        )

"""The database, and the connector that reads it: a snapshot, then transactions with random changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from tools.recorded_debezium.columns import ABOUT, ADDED, COLUMNS, ID, LONG, Column, text
from tools.recorded_debezium.messages import (
    TOPIC,
    UNAVAILABLE,
    Change,
    Converter,
    Message,
    Position,
    envelope,
    envelope_schema,
    image,
    key_schema,
)
from tools.recorded_debezium.side_topics import boundary, heartbeat
from tools.recorded_debezium.statements import add_column, delete, insert, update

Row = Mapping[str, Any]

_KEY = key_schema([ID])


@dataclass(frozen=True)
class Recorded:
    """What is recorded.

    Args:
        seed: Of the random values and changes.
        rows: How many rows the table has when the connector starts.
        transactions: How many transactions follow.
        value_schemas: Whether values carry their schema (``value.converter.schemas.enable``).
        key_schemas: Whether keys do.
        replica_identity: ``full``: a change says the whole row before it; ``default``: a delete says the key of it,
            and an update nothing.
        text_length: Characters of the text ``about``. It is long; with a short one, every update says it.
    """

    seed: int = 1
    rows: int = 20
    transactions: int = 100
    value_schemas: bool = True
    key_schemas: bool = True
    replica_identity: Literal["default", "full"] = "default"
    text_length: int = LONG


@dataclass
class Connector:
    """The database, and the connector that reads it."""

    what: Recorded
    columns: tuple[Column, ...] = COLUMNS
    table: dict[int, Row] = field(default_factory=dict)
    as_sent: dict[int, Row] = field(default_factory=dict)
    transactions: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.what.seed)
        self.converter = Converter(self.what.key_schemas, self.what.value_schemas)
        self.schema = envelope_schema(self.columns)
        self.at = Position(1_764_099_880_079_860, 700, 23_043_592, None)
        for _ in range(self.what.rows):
            row = self._new_row()
            self.table[row["id"]] = row

    def snapshot(self) -> Iterator[Message]:
        """All rows, each as read."""
        count = len(self.table)
        for at, (key, row) in enumerate(self.table.items()):
            where = "last" if at == count - 1 else "first" if at == 0 else "true"
            self.as_sent[key] = row
            read = Change("r", key, None, image(self.columns, row))
            yield self._message(key, envelope(read, self.at, snapshot=where))

    def changes(self) -> Iterator[Message]:
        """The first half of the transactions, and a heartbeat now and then."""
        yield from self._transactions(0, self._middle)

    def changes_after_a_column_was_added(self) -> Iterator[Message]:
        """The second half; the first transaction of it adds a column."""
        yield from self._transactions(self._middle, self.what.transactions)
        self.as_sent = {
            key: {column.name: row.get(column.name) for column in self.columns}
            for key, row in self.as_sent.items()
        }

    @property
    def _middle(self) -> int:
        return self.what.transactions // 2

    def _transactions(self, begin: int, end: int) -> Iterator[Message]:
        for number in range(begin, end):
            self.transactions.append([])
            if number == self._middle:
                self._add_column()
            yield from self._transaction()
            if number % 25 == 24:
                yield heartbeat(self.converter, self.at)

    def _add_column(self) -> None:
        self._do(add_column(ADDED))
        self.columns = (*self.columns, ADDED)
        self.schema = envelope_schema(self.columns)
        self.table = {key: {**row, ADDED.name: None} for key, row in self.table.items()}

    def _do(self, statement: str) -> None:
        self.transactions[-1].append(statement)

    def _transaction(self) -> Iterator[Message]:
        self._next(commit=True)
        name = f"{self.at.transaction}:{self.at.lsn}"
        yield boundary(self.converter, "BEGIN", name, self.at, None)
        events = 0
        for _ in range(self.random.randrange(1, 4)):
            for change in self._changes():
                self._next(commit=False)
                events += 1
                block = {"id": name, "total_order": events, "data_collection_order": events}
                yield self._message(change.key, envelope(change, self.at, block=block))
                if change.op == "d":
                    yield Message(TOPIC, self._key(change.key), None)
        yield boundary(self.converter, "END", name, self.at, events)

    def _changes(self) -> Iterator[Change]:
        """Changes a row: one change, or two when its key changes."""
        kind = self.random.choices(["insert", "update", "delete", "new key"], [3, 5, 2, 1])[0]
        if kind == "insert" or not self.table:
            row = self._new_row()
            self._do(insert(row))
            yield self._insert(row, row)
            return
        key = self.random.choice(sorted(self.table))
        if kind == "update":
            yield self._update(key)
            return
        row, other = self.table[key], self._new_row()["id"]
        self._do(delete(key) if kind == "delete" else update(key, ID.name, other))
        yield self._delete(key)
        if kind == "new key":
            moved = {**row, ID.name: other}
            yield self._insert(moved, self._said(moved))

    def _insert(self, row: Row, said: Row) -> Change:
        key = row["id"]
        self.table[key], self.as_sent[key] = row, said
        return Change("c", key, None, image(self.columns, said))

    def _update(self, key: int) -> Change:
        old = self.table[key]
        changed = self.random.choice([column for column in self.columns if column is not ID])
        new = {**old, changed.name: self._value(changed)}
        self._do(update(key, changed.name, new[changed.name]))
        said = new if changed is ABOUT else self._said(new)
        self.table[key], self.as_sent[key] = new, said
        before = image(self.columns, old) if self._is_full else None
        return Change("u", key, before, image(self.columns, said))

    def _delete(self, key: int) -> Change:
        row = self.table.pop(key)
        del self.as_sent[key]
        known = None if self._is_full else [ID.name]
        return Change("d", key, image(self.columns, row, known), None)

    def _said(self, row: Row) -> Row:
        """A row as Postgres says it after an update that did not change the long text."""
        is_long = self.what.text_length >= LONG
        unsaid = is_long and row[ABOUT.name] is not None and not self._is_full
        return {**row, ABOUT.name: UNAVAILABLE} if unsaid else row

    @property
    def _is_full(self) -> bool:
        return self.what.replica_identity == "full"

    def _new_row(self) -> dict[str, Any]:
        row = {column.name: self._value(column) for column in self.columns}
        while row["id"] in self.table:
            row["id"] += 1
        return row

    def _value(self, column: Column) -> Any:
        if column.nullable and self.random.random() < 0.2:
            return None
        if column is ABOUT:
            return text(self.random, self.what.text_length)
        return column.made(self.random)

    def _message(self, key: int, payload: Any) -> Message:
        value = self.converter.value(self.schema, payload)
        return Message(TOPIC, self._key(key), value)

    def _key(self, key: int) -> bytes:
        return self.converter.key(_KEY, {"id": key})

    def _next(self, *, commit: bool) -> None:
        self.at = Position(
            self.at.micros + self.random.randrange(1, 10**6),
            self.at.transaction + commit,
            self.at.lsn + self.random.randrange(56, 400),
            self.at.lsn if commit else self.at.last_commit,
        )

"""Messages as Debezium's connector for Postgres and Connect's JSON converter write them.

Sources: the page of that connector, ``SchemaFactory`` and ``PostgresSourceInfoStructMaker`` of Debezium, and
``JsonConverter`` of Apache Kafka.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.recorded_debezium.columns import Column

Json = Any

VERSION = "3.6.3.Final"
UNAVAILABLE = "__debezium_unavailable_value"
PREFIX, DATABASE, SCHEMA, TABLE = "shop", "shop", "public", "customers"
TOPIC = f"{PREFIX}.{SCHEMA}.{TABLE}"


@dataclass(frozen=True)
class Message:
    """A message of Kafka; a value of None is a tombstone."""

    topic: str
    key: bytes
    value: bytes | None


@dataclass(frozen=True)
class Change:
    """A change of the row with a key, and the row before and after it, as it is sent."""

    op: str
    key: int
    before: Json
    after: Json


@dataclass(frozen=True)
class Position:
    """Where the connector stands: times in milliseconds and more, and where in the log of the database."""

    micros: int
    transaction: int
    lsn: int
    last_commit: int | None


@dataclass(frozen=True)
class Converter:
    """Writes keys and values, with their schemas or without."""

    key_schemas: bool
    value_schemas: bool

    def key(self, schema: str, payload: Json) -> bytes:
        """A key, whose schema is JSON already."""
        return _written(schema if self.key_schemas else None, payload)

    def value(self, schema: str, payload: Json) -> bytes:
        """A value, likewise."""
        return _written(schema if self.value_schemas else None, payload)


def _written(schema: str | None, payload: Json) -> bytes:
    text = dumped(payload)
    return (text if schema is None else f'{{"schema":{schema},"payload":{text}}}').encode()


def dumped(value: Json) -> str:
    """JSON as Connect's converter writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def plain(name: str, kind: str, *, optional: bool = False) -> Json:
    """The schema of a field without parts."""
    return {"type": kind, "optional": optional, "field": name}


def struct(
    name: str, fields: Sequence[Json], *, optional: bool = False, version: int | None = None
) -> Json:
    """The schema of a struct."""
    declared = {"type": "struct", "fields": list(fields), "optional": optional, "name": name}
    return declared if version is None else {**declared, "version": version}


_SNAPSHOT = {
    "type": "string",
    "optional": True,
    "name": "io.debezium.data.Enum",
    "version": 1,
    "parameters": {
        "allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
    },
    "default": "false",
    "field": "snapshot",
}
_SOURCE = {
    **struct(
        "io.debezium.connector.postgresql.Source",
        [
            *(plain(name, "string") for name in ("version", "connector", "name")),
            plain("ts_ms", "int64"),
            _SNAPSHOT,
            plain("db", "string"),
            plain("sequence", "string", optional=True),
            *(plain(name, "int64", optional=True) for name in ("ts_us", "ts_ns")),
            *(plain(name, "string") for name in ("schema", "table")),
            *(plain(name, "int64", optional=True) for name in ("txId", "lsn", "xmin")),
            plain("origin", "string", optional=True),
            plain("origin_lsn", "int64", optional=True),
        ],
        version=1,
    ),
    "field": "source",
}
_BLOCK = {
    **struct(
        "event.block",
        [
            plain("id", "string"),
            plain("total_order", "int64"),
            plain("data_collection_order", "int64"),
        ],
        optional=True,
        version=1,
    ),
    "field": "transaction",
}


def key_schema(columns: Sequence[Column]) -> str:
    """The schema of a key."""
    return dumped(struct(f"{TOPIC}.Key", [column.field_schema() for column in columns]))


def envelope_schema(columns: Sequence[Column]) -> str:
    """The schema of a change of a row."""
    row = struct(f"{TOPIC}.Value", [column.field_schema() for column in columns], optional=True)
    times = [plain(name, "int64", optional=True) for name in ("ts_ms", "ts_us", "ts_ns")]
    images = [{**row, "field": name} for name in ("before", "after")]
    fields = [*images, _SOURCE, _BLOCK, plain("op", "string"), *times]
    return dumped(struct(f"{TOPIC}.Envelope", fields, version=2))


def envelope(change: Change, at: Position, *, snapshot: str = "false", block: Json = None) -> Json:
    """A change of a row.

    Args:
        change: The change.
        at: Where it stands in the log.
        snapshot: Whether it is of the snapshot, and which message of that.
        block: Its transaction, and its place in it.
    """
    last = None if at.last_commit is None else str(at.last_commit)
    source = {
        "version": VERSION,
        "connector": "postgresql",
        "name": PREFIX,
        "ts_ms": at.micros // 1000,
        "snapshot": snapshot,
        "db": DATABASE,
        "sequence": json.dumps([last, str(at.lsn)], separators=(",", ":")),
        "ts_us": at.micros,
        "ts_ns": at.micros * 1000,
        "schema": SCHEMA,
        "table": TABLE,
        "txId": at.transaction,
        "lsn": at.lsn,
        "xmin": None,
        "origin": None,
        "origin_lsn": None,
    }
    seen = at.micros + 120_457
    times = {"ts_ms": seen // 1000, "ts_us": seen, "ts_ns": seen * 1000 + 218}
    images = {"before": change.before, "after": change.after}
    return {**images, "source": source, "transaction": block, "op": change.op, **times}


def image(
    columns: Sequence[Column], row: Mapping[str, Any], known: Sequence[str] | None = None
) -> Json:
    """A row as it is sent.

    Args:
        columns: The table's columns.
        row: The values by their columns.
        known: The columns that the database told, if it did not tell all.
    """
    return {
        column.name: column.fallback
        if known is not None and column.name not in known
        else sent(column, row.get(column.name))
        for column in columns
    }


def sent(column: Column, value: Any) -> Json:
    """A value as it is sent."""
    return value if value is None or value == UNAVAILABLE else column.sent(value)

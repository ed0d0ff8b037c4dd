"""Messages beside those of the tables: heartbeats, and where transactions begin and end, each in a topic of its own."""

from __future__ import annotations

from tools.recorded_debezium.messages import (
    PREFIX,
    SCHEMA,
    TABLE,
    Converter,
    Message,
    Position,
    dumped,
    plain,
    struct,
)

TRANSACTION_TOPIC = f"{PREFIX}.transaction"
HEARTBEAT_TOPIC = f"__debezium-heartbeat.{PREFIX}"


def heartbeat(converter: Converter, at: Position) -> Message:
    """A message that says that the connector lives."""
    key = struct(
        "io.debezium.connector.common.ServerNameKey", [plain("serverName", "string")], version=1
    )
    value = struct("io.debezium.connector.common.Heartbeat", [plain("ts_ms", "int64")], version=1)
    return Message(
        HEARTBEAT_TOPIC,
        converter.key(dumped(key), {"serverName": PREFIX}),
        converter.value(dumped(value), {"ts_ms": at.micros // 1000}),
    )


def boundary(
    converter: Converter, status: str, name: str, at: Position, events: int | None
) -> Message:
    """The begin or the end of a transaction.

    Args:
        converter: Writes the message.
        status: ``BEGIN`` or ``END``.
        name: The transaction.
        at: When it was.
        events: How many changes it had, at its end.
    """
    key = struct(
        "io.debezium.connector.common.TransactionMetadataKey", [plain("id", "string")], version=1
    )
    collection = struct(
        "event.collection",
        [plain("data_collection", "string"), plain("event_count", "int64")],
        optional=True,
        version=1,
    )
    value = struct(
        "io.debezium.connector.common.TransactionMetadataValue",
        [
            *(plain(each, "string") for each in ("status", "id")),
            plain("event_count", "int64", optional=True),
            {"type": "array", "items": collection, "optional": True, "field": "data_collections"},
            plain("ts_ms", "int64"),
        ],
        version=1,
    )
    tables = [{"data_collection": f"{SCHEMA}.{TABLE}", "event_count": events}]
    payload = {
        "status": status,
        "id": name,
        "event_count": events,
        "data_collections": None if events is None else tables,
        "ts_ms": at.micros // 1000,
    }
    return Message(
        TRANSACTION_TOPIC,
        converter.key(dumped(key), {"id": name}),
        converter.value(dumped(value), payload),
    )

"""Flink and Spark read the same topics of a database's changes; run by ``make test-flink``.

Flink reads each topic with its ``kafka`` connector, and writes what it read to another one in ``debezium-json``, which says of
each row whether it was added (``c``) or taken away (``d``). Spark reads the first topic, with rows before and after each change.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.spark.batches import load
from tests.spark.conftest import spark  # noqa: F401 - a fixture
from tools.flink.flink import run, table

COLUMNS = "id BIGINT, name STRING, weight DOUBLE, made TIMESTAMP(3)"
OURS = "id BIGINT, name STRING, weight DOUBLE, made TIMESTAMP_NTZ"


def row(
    id_: int,
    name: str | None,
    weight: float | None = 1.5,
    made: str | None = "2024-01-31 12:30:00.123",
) -> Any:
    """A row as JSON has it."""
    return {"id": id_, "name": name, "weight": weight, "made": made, "unknown": [1, {"a": None}]}


SOURCE = {
    "version": "2.5",
    "ts_ms": 1_700_000_000_123,
    "db": "shop",
    "schema": "public",
    "table": "things",
}


def debezium(op: str, before: Any, after: Any) -> Any:
    """A message of Debezium."""
    return {
        "before": before,
        "after": after,
        "op": op,
        "source": SOURCE,
        "ts_ms": 1_700_000_000_456,
    }


DEBEZIUM = [
    debezium("r", None, row(1, "a")),
    debezium("c", None, row(2, None, None, None)),
    debezium("u", row(1, "a"), row(1, "b", 2)),
    None,
    debezium("u", row(2, None), row(3, "ü")),
    "",
    debezium("d", row(1, "b", 2), None),
    debezium("d", {"id": 3}, None),
]


def ogg(op: str, before: Any, after: Any) -> Any:
    """A message of Oracle GoldenGate."""
    return {"op_type": op, "before": before, "after": after, "table": "S.T", "primary_keys": ["id"]}


def canal(type_: str, data: Any, old: Any = None, **more: Any) -> Any:
    """A message of Canal."""
    return {
        "type": type_,
        "data": data,
        "old": old,
        "database": "shop",
        "table": "t",
        "ts": 1_700_000_000_456,
        **more,
    }


def maxwell(type_: str, data: Any, old: Any = None) -> Any:
    """A message of Maxwell."""
    message = {"type": type_, "data": data, "database": "shop", "table": "t", "ts": 1_700_000_000}
    return message if old is None else {**message, "old": old}


METADATA: dict[str, dict[str, str]] = {
    "debezium-json": {
        "read_at": "value.ingestion-timestamp",
        "at": "value.source.timestamp",
        "db": "value.source.database",
    },
    "ogg-json": {"db": "value.table"},
    "maxwell-json": {"read_at": "value.ingestion-timestamp", "db": "value.database"},
    "canal-json": {"read_at": "value.ingestion-timestamp", "db": "value.database"},
}
TOPICS: dict[str, tuple[list[Any], dict[str, str]]] = {
    "debezium-json": (DEBEZIUM, {}),
    "debezium-json with schema": (
        [each and {"schema": {"type": "struct"}, "payload": each} for each in DEBEZIUM],
        {"schema-include": "true"},
    ),
    "debezium-json with errors": (
        [
            *DEBEZIUM[:3],
            debezium("x", None, None),
            "{",
            debezium("c", None, {"id": 9, "weight": "?"}),
            debezium("d", None, None),
        ],
        {"ignore-parse-errors": "true"},
    ),
    "ogg-json": (
        [
            ogg("I", None, row(1, "a")),
            ogg("U", row(1, "a"), row(1, "b")),
            ogg("D", row(1, "b"), None),
            None,
        ],
        {},
    ),
    "maxwell-json": (
        [
            maxwell("insert", row(1, "a")),
            maxwell("update", row(1, "b"), {"name": "a"}),
            maxwell("update", row(1, None), {"name": "b", "weight": None}),
            maxwell("update", row(2, None), {"id": 1}),
            maxwell("delete", row(2, None)),
        ],
        {},
    ),
    "canal-json": (
        [
            canal("INSERT", [row(1, "a"), row(2, "b")]),
            canal(
                "UPDATE",
                [row(1, "c"), row(2, None)],
                [{"name": "a", "weight": None}, {"name": "b", "weight": 7}],
            ),
            canal("CREATE", None, isDdl=True),
            canal("DELETE", [row(1, "c")]),
        ],
        {},
    ),
    "canal-json of one table": (
        [canal("INSERT", [row(1, "a")]), canal("INSERT", [{"id": "?"}]) | {"table": "other"}],
        {"table.include": "t", "database.include": "sh.*"},
    ),
}


@pytest.fixture(scope="module")
def topics(broker: Broker) -> dict[str, tuple[str, str]]:
    """For each name of ``TOPICS`` the topic with the messages, and that to which Flink has copied what it read."""
    made = {name: (broker.topic(), broker.topic()) for name in TOPICS}
    statements: list[str] = []
    for name, (first, second) in made.items():
        messages, more = TOPICS[name]
        format_ = name.split(maxsplit=1)[0]
        values = [
            each if not each or isinstance(each, str) else json.dumps(each) for each in messages
        ]
        broker.produce(first, *((None, value) for value in values))
        shown = [
            f"`{column}` {kind_of(column)} METADATA FROM '{key}' VIRTUAL"
            for column, key in METADATA[format_].items()
        ]
        given = {
            **place(broker, first, format_),
            **{f"{format_}.{option}": value for option, value in more.items()},
        }
        copied = [f"`{column}` {kind_of(column)}" for column in METADATA[format_]]
        statements += [
            table(
                f"{name} first",
                ", ".join([COLUMNS, *shown]),
                {**given, "scan.bounded.mode": "latest-offset"},
            ),
            table(
                f"{name} second",
                ", ".join([COLUMNS, *copied]),
                place(broker, second, "debezium-json"),
            ),
            f"INSERT INTO `{name} second` SELECT * FROM `{name} first`",
        ]
    run(statements)
    return made


def kind_of(column: str) -> str:
    """The type of a column that shows metadata."""
    return "STRING" if column == "db" else "TIMESTAMP_LTZ(3)"


def place(broker: Broker, topic: str, format_: str) -> dict[str, str]:
    """Flink's options for a topic that it reads from its beginning."""
    return {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": broker.servers,
        "scan.startup.mode": "earliest-offset",
        "format": format_,
    }


def read(
    session: SparkSession, broker: Broker, topic: str, name: str, *, copied: bool = False
) -> list[tuple[Any, ...]]:
    """What Spark reads of a topic, in the order of its messages: whether a row is added, and the row."""
    format_ = name.split(maxsplit=1)[0]
    more = {f"value.{format_}.{option}": value for option, value in TOPICS[name][1].items()}
    given = {
        "value.format": format_,
        **{f"metadata.{column}": key for column, key in METADATA[format_].items()},
        **more,
    }
    if copied:
        given = {"value.format": "debezium-json"}
    kinds = [
        f"{column} {'STRING' if column == 'db' else 'TIMESTAMP'}" for column in METADATA[format_]
    ]
    frame = load(
        session,
        ", ".join(["_change_type STRING", OURS, *kinds]),
        options(
            broker, topic, primary_key=None, key__format=None, **{"read.mode": "changelog", **given}
        ),
    )
    added = {"insert": True, "update_postimage": True, "update_preimage": False, "delete": False}
    return [(added[change], *values) for change, *values in frame.collect()]


@pytest.mark.parametrize("name", TOPICS)
def test_both_read_the_same(
    spark: SparkSession,  # noqa: F811
    broker: Broker,
    topics: dict[str, tuple[str, str]],
    name: str,
) -> None:
    """Each message gives the same rows before and after a change, with the same metadata."""
    first, second = topics[name]
    ours = read(spark, broker, first, name)

    assert ours == read(spark, broker, second, name, copied=True)
    assert ours

"""The page on many tables: each topic of a connector becomes a table, also one that comes later, or whose table gets a column."""

from __future__ import annotations

import io
import re
import time
import uuid
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest

from tests.conftest import Broker
from tests.lakehouse.engines import Lake
from tests.spark.pages import MANY_TABLES, snippets
from tests.unit.registry.fake_registry import FakeRegistry, serving

ID, NAME = (
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"], "default": None},
)
TIER = {"name": "tier", "type": ["null", "int"], "default": None}


def envelope(topic: str, fields: list[Any]) -> dict[str, Any]:
    """The schema of a topic's values."""
    row = {"type": "record", "name": "Value", "fields": fields}
    return {
        "type": "record", "name": "Envelope", "namespace": topic,
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "op", "type": "string"},
        ],
    }  # fmt: skip


class Connector:
    """Writes what Debezium writes.

    Args:
        broker: Where to.
        registry: Where its schemas are.
        prefix: What the names of its topics begin with.
    """

    def __init__(self, broker: Broker, registry: FakeRegistry, prefix: str) -> None:
        self._broker, self._registry, self.prefix = broker, registry, prefix
        self._fields: dict[str, list[Any]] = {}
        self._ids: dict[str, int] = {}

    def table(self, name: str, *fields: Any) -> None:
        """A table with these columns, new or altered; its key is ``id``."""
        topic = f"{self.prefix}{name}"
        if name not in self._fields:
            self._broker.create(topic)
        key = {"type": "record", "name": "Key", "namespace": topic, "fields": [ID]}
        self._fields[name], self._ids[name] = list(fields), 10 + len(self._ids) * 10 + len(fields)
        schema = envelope(topic, self._fields[name])
        self._registry.version(f"{topic}-key", "latest", key)
        self._registry.version(f"{topic}-value", "latest", schema)
        self._registry.schema(self._ids[name], schema)

    def change(self, name: str, op: str, row: dict[str, Any]) -> None:
        """One change."""
        schema = fastavro.parse_schema(envelope(f"{self.prefix}{name}", self._fields[name]))
        written = io.BytesIO()
        sides = {"before": row, "after": None} if op == "d" else {"before": None, "after": row}
        fastavro.schemaless_writer(written, schema, {**sides, "op": op})
        value = b"\0" + self._ids[name].to_bytes(4, "big") + written.getvalue()
        self._broker.produce(f"{self.prefix}{name}", (b"%d" % row["id"], value))


@pytest.fixture
def connector(broker: Broker) -> Iterator[Connector]:
    """A connector of its own."""
    with serving() as registry:
        yield Connector(broker, registry, f"shop{uuid.uuid4().hex[:8]}.public.")


def eventually(found: Any, wanted: Any) -> None:
    """Waits until it is so; whoever never sees it is told what was seen last."""
    seen: Any = None
    for _ in range(1_200):
        try:
            seen = found()
        except Exception as error:  # noqa: BLE001 - the table may not be there yet
            seen = error
        if seen == wanted:
            return
        time.sleep(0.25)
    raise AssertionError(f"{seen!r} is not {wanted!r}")


@pytest.mark.timeout(900)
def test_the_program_of_the_page(lake: Lake, connector: Connector, broker: Broker) -> None:
    """Tables that are there, one that comes later, one that gets a column while its query runs; and then all of them in turn.

    A topic whose table has no primary key, and so no schema of a key, stops none of them.
    """
    code, in_turn = (each.code for each in snippets(MANY_TABLES.read_text(encoding="utf-8")))
    schema = f"lake.{connector.prefix.split('.')[0]}"
    for old, new in {
        "localhost:9092": broker.servers,
        "http://localhost:8081": connector._registry.url,
        r"shop\.public\.": re.escape(connector.prefix),
        "lake.shop.": f"{schema}.",
        "/tmp/checkpoints": f"{lake.folder}/{connector.prefix}",
        "1 minute": "0 seconds",
    }.items():
        assert old in code
        code = code.replace(old, new)
    lake.session.sql(f"CREATE NAMESPACE IF NOT EXISTS {schema}")
    program: dict[str, Any] = {"spark": lake.session}
    exec(code, program)

    def rows(table: str) -> list[tuple[Any, ...]]:
        found = lake.session.sql(f"SELECT * FROM {schema}.{table} ORDER BY id").collect()
        return [tuple(row) for row in found]

    broker.create(f"{connector.prefix}audit")
    connector.table("users", ID, NAME)
    connector.table("orders", ID)
    connector.change("users", "c", {"id": 1, "name": "Ada"})
    connector.change("users", "c", {"id": 2, "name": "Alan"})
    connector.change("orders", "c", {"id": 7})
    try:
        program["look"]()
        eventually(lambda: rows("users"), [(1, "Ada"), (2, "Alan")])
        eventually(lambda: rows("orders"), [(7,)])
        connector.table("items", ID, NAME)
        connector.change("items", "r", {"id": 3, "name": "tea"})
        connector.change("users", "d", {"id": 2, "name": "Alan"})
        connector.table("users", ID, NAME, TIER)
        connector.change("users", "u", {"id": 1, "name": "Ada", "tier": 5})

        def looked_at(table: str) -> list[tuple[Any, ...]]:
            program["look"]()
            return rows(table)

        eventually(lambda: looked_at("users"), [(1, "Ada", 5)])
        eventually(lambda: rows("items"), [(3, "tea")])
        assert sorted(program["queries"]) == [
            f"{connector.prefix}{name}" for name in ("items", "orders", "users")
        ]
    finally:
        for query in program["queries"].values():
            query.stop()

    assert 'processingTime="0 seconds"' in code
    round_: dict[str, Any] = {"spark": lake.session}
    ending = code.replace('processingTime="0 seconds"', "availableNow=True")
    exec(f"{ending}\n{in_turn}", round_)
    connector.change("orders", "c", {"id": 8})

    topics = [f"{connector.prefix}audit", *program["queries"]]

    def read_in_turn() -> list[tuple[Any, ...]]:
        round_["round_of"](sorted(topics), 2)
        return rows("orders")

    # A batch that stop() has interrupted is a round of its own.
    eventually(read_in_turn, [(7,), (8,)])

"""Columns come, go and get wider while messages are read: none is lost, repeated, or read without a column that the newest schema has."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Union

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_upsert_kafka import SchemaChangedError, TableChanges, read_changes
from pyspark_upsert_kafka.connector import schema_inference
from pyspark_upsert_kafka.connector.reading import later_columns
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from tests.laws import law
from tests.table_options import table_options
from tests.unit.connector.memory_topics import Message
from tests.unit.connector.reading.test_later_columns import avro, beside, connect, framed
from tests.unit.connector.test_read_changes import Topics, topics
from tests.unit.registry.fake_registry import FakeRegistry, serving

__all__ = ["topics"]

PLACE = TopicPartition("t", 0)

Columns = dict[str, Union[str, "Columns"]]
"""``int`` or ``long`` by name, or the fields of the structs in an array."""


@dataclass
class Writers:
    """A topic whose columns change, and what its messages hold.

    Args:
        topics: Where it lies.
        rng: Decides what happens.
    """

    topics: Topics
    rng: random.Random
    versions: list[Columns] = field(default_factory=lambda: [{"id": "long"}])
    rows: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    names: int = 0

    def change_columns(self) -> None:
        """A column is added, dropped, renamed or gets wider, or a field of one."""
        new = json.loads(json.dumps(self.versions[-1]))
        arrays = [each for each in new.values() if isinstance(each, dict)]
        columns = self.rng.choice([new, *arrays])
        others = [name for name in columns if name not in {"id", "it"}]
        what = self.rng.choice(["add", "add", "drop", "rename", "widen"])
        if what in {"drop", "rename"} and others:
            gone = columns.pop(self.rng.choice(others))
            if what == "rename":
                columns[self._name()] = gone
        elif what == "widen":
            columns |= {name: "long" for name in others if columns[name] == "int"}
        else:
            kinds: list[Any] = ["int", "long", {"it": "int"}]
            columns[self._name()] = self.rng.choice(kinds[: 3 if columns is new else 2])
        self.versions.append(new)

    def write(self, message: Any, version: int) -> None:
        """Appends a message of a version."""
        columns, offset = self.versions[version], len(self.rows)
        row = {name: self._value(kind) for name, kind in columns.items()} | {"id": offset}
        self.rows.append((version, row))
        value = message(version, columns, row)
        there = self.topics.messages[PLACE]
        self.topics.messages[PLACE] = [*there, Message(b'{"id":%d}' % offset, value, offset)]
        self.topics.produce("t", 0, 1)

    def _name(self) -> str:
        self.names += 1
        return f"c{self.names}"

    def _value(self, kind: str | Columns) -> Any:
        if isinstance(kind, dict):
            return [{name: self._value(each) for name, each in kind.items()}]
        return self.rng.randint(-9, 9) + (2**40 if kind == "long" else 0)


class Confluent:
    """Avro and a registry, which says which schema is the newest."""

    def __init__(self, registry: FakeRegistry) -> None:
        self._registry = registry
        self.options = {
            "value.format": "avro-confluent",
            "value.avro-confluent.url": registry.url,
        }

    def registered(self, versions: list[Columns]) -> None:
        """The registry has another version."""
        self._registry.schema(len(versions), self._schema(versions[-1]))
        self._registry.version("t-value", "latest", self._schema(versions[-1]))

    def message(self, version: int, columns: Columns, row: Mapping[str, Any]) -> bytes:
        """A message of a version."""
        return framed(version + 1, self._schema(columns), row)

    def newest(self, writers: Writers) -> Columns:
        """The columns that a start has now."""
        return writers.versions[-1]

    def _schema(self, columns: Columns, name: str = "r") -> dict[str, Any]:
        fields = [{"name": each, "type": self._type(each, kind)} for each, kind in columns.items()]
        return {**avro(*fields), "name": name}

    def _type(self, name: str, kind: str | Columns) -> Any:
        if isinstance(kind, str):
            return kind
        return {"type": "array", "items": self._schema(kind, f"in_{name}")}


class Debezium:
    """Messages with their schemas beside them, of which the newest ten say the columns."""

    def __init__(self, _: FakeRegistry) -> None:
        self.options = {
            "value.format": "debezium-json",
            "value.debezium-json.schema-include": "true",
        }

    def registered(self, versions: list[Columns]) -> None:
        """Nobody else knows of a version."""

    def message(self, _: int, columns: Columns, row: Mapping[str, Any]) -> bytes:
        """A message of a version."""
        return beside(connect(*self._fields(columns)), **row)

    def newest(self, writers: Writers) -> Columns:
        """The columns that a start has now."""
        found: Columns = {}
        for version, _ in writers.rows[-10:]:
            for name, kind in writers.versions[version].items():
                inner = found.get(name, {})
                is_struct = isinstance(kind, dict) and isinstance(inner, dict)
                found[name] = {**inner, **kind} if is_struct else kind  # type: ignore[dict-item]
        return found

    def _fields(self, columns: Columns) -> list[dict[str, Any]]:
        return [
            {"field": name, "optional": name != "id", **self._type(kind)}
            for name, kind in columns.items()
        ]

    def _type(self, kind: str | Columns) -> dict[str, Any]:
        if isinstance(kind, str):
            return {"type": {"int": "int32", "long": "int64"}[kind]}
        return {"type": "array", "items": {"type": "struct", "optional": False, "fields": self._fields(kind)}}  # fmt: skip


def shared(row: Any, columns: str | Columns) -> Any:
    """What some columns show of a row."""
    if isinstance(columns, str) or row is None:
        return row
    if isinstance(row, list):
        return [shared(each, columns) for each in row]
    return {name: shared(row[name], kind) for name, kind in columns.items() if name in row}


@pytest.mark.parametrize("format_", [Confluent, Debezium])
@law(300, few=15)
@example(seed=142)
@example(seed=291)
@given(seed=st.integers(0, 2**32))
def test_each_message_is_read_once_with_the_newest_columns(format_: Any, seed: int) -> None:
    """Writers of two versions may write by turns; a reader that is ended goes on at its position, with the columns of a new start."""
    rng = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch, serving() as registry:
        patch.setattr(later_columns, "_AGAIN_S", 0.0)
        there = topics.__wrapped__(patch)
        client = SimpleNamespace(cluster=lambda *_: there, reader=lambda _: there)
        patch.setattr(schema_inference, "load_client", lambda _: client)
        format_ = format_(registry)
        writers = Writers(there, rng)
        format_.registered(writers.versions)
        writers.write(format_.message, 0)
        given_ = {"scan.schema-changes": "restart", "metadata.at": "offset", **format_.options}
        read: list[int] = []
        position: str | None = None
        found: TableChanges | None = None
        for _ in range(rng.randint(3, 8)):
            ends = 0
            while True:
                found = found or read_changes(
                    table_options(**given_), schema=None, start="earliest", position=position
                )
                there.clock.now += 10
                try:
                    if found.caught_up:
                        break
                    rows = next(found).to_pylist()
                except SchemaChangedError:
                    ends += 1
                    assert ends <= 3
                    found.close()
                    found = None
                    continue
                position = found.position
                for row in rows:
                    read.append(row["at"])
                    _, written = writers.rows[row["at"]]
                    wanted = shared(written, format_.newest(writers))
                    assert shared(row, wanted_columns(wanted)) == wanted
            assert read == [*range(len(writers.rows))]
            for _ in range(rng.randint(0, 2)):
                writers.change_columns()
                format_.registered(writers.versions)
            for _ in range(rng.randint(0, 4)):
                last = len(writers.versions) - 1
                writers.write(format_.message, max(0, last - rng.choice([0, 0, 1, 2])))
        if found is not None:
            found.close()


def wanted_columns(row: Any) -> Any:
    """The columns of a row, as `shared` takes them."""
    if isinstance(row, list):
        return wanted_columns(row[0])
    if isinstance(row, dict):
        return {name: wanted_columns(each) for name, each in row.items()}
    return ""

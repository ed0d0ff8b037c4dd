"""Columns that messages have by now, by versions of a schema of AWS Glue, compressed or not."""

from __future__ import annotations

import json
import zlib
from typing import Any
from uuid import UUID

import pytest

from pyspark_upsert_kafka.core.errors import SchemaChangedError
from pyspark_upsert_kafka.registry.glue_framing import header_of
from tests.unit.connector.reading.test_later_columns import ID, TIER, Stream, avro, framed
from tests.unit.registry.fake_glue import FakeGlue
from tests.unit.registry.fake_registry import FakeRegistry


def test_a_version_with_a_new_column(glue: FakeGlue, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest version of the schema says what a new start has."""
    old, new = avro(ID), avro(ID, TIER)
    glue.schema(1, "AVRO", json.dumps(old))
    newest = [glue.versions[str(UUID(int=1))]]
    by_id = glue.answer

    def answer(action: str, asked: dict[str, Any]) -> Any:
        return (200, newest[-1]) if "SchemaVersionNumber" in asked else by_id(action, asked)

    monkeypatch.setattr(glue, "answer", answer)
    given = {"value.avro-glue.url": None, "value.avro-glue.endpoint": glue.url}
    stream = Stream(FakeRegistry(), "avro-glue", **given, **{"scan.schema-changes": "restart"})
    first = header_of(UUID(int=1)) + framed(0, old, {"id": 1})[5:]
    assert stream.rows(first) == [{"id": 1}]
    glue.schema(2, "AVRO", json.dumps(new))
    newest.append(glue.versions[str(UUID(int=2))])

    body = framed(0, new, {"id": 2, "tier": 3})[5:]
    plain = header_of(UUID(int=2)) + body
    packed = header_of(UUID(int=2), compressed=True) + zlib.compress(body)
    for message in (plain, packed):
        with pytest.raises(SchemaChangedError, match="tier INT") as raised:
            stream.read(first, message)
        assert (raised.value.offset, raised.value.subject) == (101, "orders")

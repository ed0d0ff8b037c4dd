"""Metadata of the CDC formats: every key that a format has, with and without schemas, with a primary key and without one."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS, METADATA_OF_FORMATS
from tests.unit.formats.cdc.corpus import METADATA, UPDATES
from tests.unit.formats.cdc.decoding import change_decoder, checked, text

ODD: list[Any] = [
    None, "x", "", 7, -1.5, True, [], ["a", None, 1], {}, {"ts_ms": "x", "db": 1, "schema": None, "table": {}},
    {"a": 1}, 1_700_000_000_123, 1 << 70, "2024-01-31 12:30:00.123456",
]  # fmt: skip
KEYS = [
    (name, include, keys)
    for name, known in CDC_FORMATS.items()
    if known
    for include in ((None, "false", "true") if name == "debezium-json" else (None,))
    for keys in [*([key] for key in known), [*known]]
]


def messages_of(name: str, include: str | None) -> list[bytes]:
    """Changes without metadata, with each of its fields in all kinds of forms, and one of a message that is none."""
    more: list[dict[str, Any]] = [{}, *({f: v} for f, v in itertools.product(METADATA, ODD))]
    changes = UPDATES.get(name)
    assert changes, f"tests/unit/formats/cdc/corpus.py: UPDATES has none of {name}"
    plain = [change | fields for change in changes for fields in more]
    if include == "true":
        schemas = [None, {"type": "struct", "fields": []}, "x"]
        plain = [{"schema": s, "payload": each} for each in plain for s in schemas]
    return [text(each) for each in plain] + [b"", b"[", b"{}"]


@pytest.mark.parametrize("lenient", ["false", "true"], ids=["strict", "lenient"])
@pytest.mark.parametrize("key", [None, ["id"]], ids=["images", "key"])
@pytest.mark.parametrize(("name", "include", "keys"), KEYS)
def test_every_key_is_shown(
    name: str, include: str | None, keys: list[str], key: list[str] | None, lenient: str
) -> None:
    """Each wanted key has a column of its type, with a value for each row; no message raises, alone or among others."""
    options = {} if include is None else {"schema_include": include}
    decoder = change_decoder(name, key=key, metadata=keys, ignore_parse_errors=lenient, **options)
    messages = messages_of(name, include)
    found = checked(decoder.decode(messages))
    assert sorted(found.metadata) == sorted(keys)
    for each, column in found.metadata.items():
        of_table = METADATA_OF_FORMATS[each].types[0]
        wanted = arrow_schema(spark_columns("c STRING").add("m", of_table)).field("m").type
        assert column.type.equals(wanted), each
    places = found.places.tolist()
    for at in [0, 5, len(messages) // 2, len(messages) - 4]:
        alone = checked(decoder.decode([messages[at]]))
        of_batch = [row for row, place in enumerate(places) if place == at]
        for each, column in found.metadata.items():
            assert (
                column.take(pa.array(of_batch, pa.int64())).to_pylist()
                == alone.metadata[each].to_pylist()
            ), each
    nothing = checked(decoder.decode([]))
    assert all(not len(column) for column in nothing.metadata.values())


@pytest.mark.parametrize("include", ["false", "true"])
def test_debezium_without_schemas_shows_none(include: str) -> None:
    """As in Flink, ``value.schema`` is NULL where no schema is around the envelope."""
    change = UPDATES["debezium-json"][0]
    message = {"payload": change} if include == "true" else change
    decoder = change_decoder("debezium-json", metadata=["value.schema"], schema_include=include)
    found = decoder.decode([text(message)] * 100)
    assert found.metadata["value.schema"].to_pylist() == [None] * 200

"""Topics with very many messages that name schemas which nobody knows: the good ones among them are read, whatever that takes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.reading.message_rows import RowDecoder, Rows
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from pyspark_upsert_kafka.registry.framing import id_bytes
from pyspark_upsert_kafka.registry.glue_framing import header_of
from tests.table_options import table_options
from tests.unit.registry.fake_registry import FakeRegistry

COLUMNS = StructType([StructField("id", LongType()), StructField("_change_type", StringType())])
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
KNOWN, KNOWN_VERSION = 7, UUID(int=7)
AT_ONCE = 40
AGAIN, AGAIN_S = 10, 20.0  # so many are asked for once more, and so long that takes
FIRST = 50_000
HIGHEST = 9
UNKNOWN = (404, {"error_code": 40403, "message": "Schema not found"})
NO_PATH = (404, {"error_code": 404, "message": "HTTP 404 Not Found"})


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses begin after 40 in vain."""
    monkeypatch.setattr("pyspark_upsert_kafka.registry.unknown_ids._AT_ONCE", AT_ONCE)


@pytest.fixture
def confluent(registry: FakeRegistry) -> FakeRegistry:
    """A registry with one schema, which does not say which id is the highest."""
    registry.schema(KNOWN, SCHEMA)
    registry.answers[f"/schemas/ids/{KNOWN}?fetchMaxId=true"] = registry.answers[
        f"/schemas/ids/{KNOWN}"
    ]
    return registry


def rows_of(options: dict[str, str], messages: list[bytes], **how: Any) -> Rows:
    """The rows of a batch of these values."""
    parsed = read_options(options, format_options, stream=True)
    decoder = RowDecoder(table_to_read(COLUMNS, parsed), parsed, "UTC", **how)
    keys = BytesColumn.of([b"{}"] * len(messages))
    return decoder.decode(RawBatch("t", 0, keys, BytesColumn.of(messages), [*range(len(messages))]))


def options_of(format_: str, **given: str) -> dict[str, str]:
    """Options of a changelog whose values have this format; what cannot be decoded is skipped."""
    more = {f"value.{format_}.{name}": value for name, value in given.items()}
    return table_options(
        value__format=format_, **{"read.mode": "changelog", "error-handling.mode": "ignore", **more}
    )


def read(rows: Rows) -> list[int]:
    """The ids that were read."""
    return [each for each in rows.columns[0].to_pylist() if each is not None]


def test_a_good_id_that_one_message_names_is_read_in_a_flood(confluent, clock):
    """Skipped is only what the registry has said that it does not know; the task waits for its turn to ask."""
    flood = [id_bytes(FIRST + number) + b"\2" for number in range(3 * AT_ONCE)]
    rows = rows_of(
        options_of("avro-confluent", url=confluent.url), [*flood, id_bytes(KNOWN) + b"\2"]
    )

    assert read(rows) == [1]
    assert len(rows.bad) == len(flood)
    assert all("is not in the schema registry" in each.reason for each in rows.bad)
    assert clock.waited == pytest.approx(AGAIN_S + (2 * AT_ONCE - AGAIN) / 25, abs=0.1)


def test_a_good_version_that_one_message_names_is_read_in_a_flood(glue, clock):
    """The same of AWS Glue."""
    glue.schema(KNOWN_VERSION, "AVRO", json.dumps(SCHEMA))
    flood = [header_of(UUID(int=FIRST + number)) + b"\2" for number in range(3 * AT_ONCE)]
    options = options_of("avro-glue", endpoint=glue.url)
    rows = rows_of(options, [*flood, header_of(KNOWN_VERSION) + b"\2"])

    assert read(rows) == [1]
    assert len(rows.bad) == len(flood)
    assert all("EntityNotFoundException" in each.reason for each in rows.bad)
    assert clock.waited == pytest.approx(AGAIN_S + (2 * AT_ONCE - AGAIN) / 25, abs=0.1)


def test_a_registry_that_says_its_highest_id_is_not_asked_for_higher_ones(confluent, clock):
    """One answer is enough for all of them in a batch, and a new one is asked for with the next: by then there may be more.

    One little above it may have been given since, which the node that answers need not know yet.
    """
    said = confluent.answers[f"/schemas/ids/{KNOWN}"][0][1]
    known = f"/schemas/ids/{KNOWN}?fetchMaxId=true"
    confluent.answers[known] = [(200, {**said, "maxId": HIGHEST})]
    flood = [id_bytes(FIRST + number) + b"\2" for number in range(3 * AT_ONCE)]
    good = [id_bytes(KNOWN) + b"\2"] * 2
    options = options_of("avro-confluent", url=confluent.url)

    little_above = f"/schemas/ids/{HIGHEST + 10_000}"
    confluent.answers[little_above] = [UNKNOWN, confluent.answers[f"/schemas/ids/{KNOWN}"][0]]
    rows = rows_of(options, [*flood, id_bytes(HIGHEST + 10_000) + b"\2", *good])
    assert read(rows) == [1, 1, 1]
    said_of_sixth = (
        f"Schema id {FIRST + 5} is not in the schema registry, whose highest id is {HIGHEST}"
    )
    assert rows.bad[5].reason == said_of_sixth
    first, *others = (f"/schemas/ids/{FIRST + number}" for number in range(5))
    asked = [f"/schemas/ids/{KNOWN}", first, known, *others, known, *[little_above] * 2]
    assert confluent.paths() == asked
    assert clock.waited == 2.0

    confluent.answers[known] = [(200, {**said, "maxId": FIRST + 9})]
    confluent.schema(FIRST + 9, SCHEMA)
    clock.now += 31.0
    assert read(rows_of(options, [*flood, *good])) == [1, 1, 1]


def test_a_flood_of_guids_where_nobody_knows_guids(confluent, clock):
    """The registry is asked for one of them, and whether it is there at all."""
    guids = [UUID(int=FIRST + number) for number in range(3 * AT_ONCE)]
    confluent.answers |= {f"/schemas/guids/{guid}": [NO_PATH] for guid in guids}
    messages = [id_bytes(guid) + b"\2" for guid in guids]
    options = options_of("avro-confluent", url=confluent.url)

    assert read(rows_of(options, [*messages, id_bytes(KNOWN) + b"\2"])) == [1]
    assert [path for path in confluent.paths() if "guids" in path] == [f"/schemas/guids/{guids[0]}"]
    assert clock.waited == 0.0


def test_plain_json_asks_for_nothing(confluent, clock):
    """Nothing in it may be an id."""
    messages = [b'{"id":%d}' % number for number in range(5_000)]
    assert not read(rows_of(options_of("avro-confluent", url=confluent.url), messages))
    assert (confluent.asked, clock.waited) == ([], 0.0)


def test_random_bytes(confluent, clock):
    """Of 20,000 messages some 120 may name a schema, two thirds of them a GUID: each is asked for."""
    some = random.Random(7)
    messages = [some.randbytes(30) for _ in range(20_000)]
    ids = sum(each[0] == 0 and each[1] < 0x80 for each in messages)
    guids = sum(each[0] == 1 for each in messages)
    options = options_of("avro-confluent", url=confluent.url)

    rows = rows_of(options, [*messages, id_bytes(KNOWN) + b"\2"])
    assert read(rows) == [1]
    assert len(rows.bad) == len(messages)
    assert 25 < ids < 55
    assert 55 < guids < 105
    paced_s = (ids + guids - 2 * AGAIN - AT_ONCE) / 25
    assert clock.waited == pytest.approx(2 * AGAIN_S + paced_s, abs=0.5)


@pytest.mark.parametrize(
    ("format_", "framed"),
    [
        ("avro-confluent", id_bytes),
        ("avro-glue", lambda number: header_of(UUID(int=number))),
    ],
)
def test_where_reading_ends_at_the_first_bad_message_no_schema_behind_it_is_looked_up(
    confluent, glue, clock, format_: str, framed: Callable[[int], bytes]
):
    """The error names that message, whose schema is asked for once more."""
    glue.schema(KNOWN_VERSION, "AVRO", json.dumps(SCHEMA))
    good = [framed(KNOWN) + b"\2"] * 3
    flood = [framed(FIRST + number) + b"\2" for number in range(3 * AT_ONCE)]
    given = {"url": confluent.url} if format_ == "avro-confluent" else {"endpoint": glue.url}
    options = {**options_of(format_, **given), "error-handling.mode": "fail"}

    rows = rows_of(options, [*good, *flood, *good], ends_at_bad=True)
    assert (rows.bad[0].index, len(rows.bad)) == (3, len(flood) + 0)
    assert str(FIRST) in rows.bad[0].reason or str(UUID(int=FIRST)) in rows.bad[0].reason
    assert len([path for path in confluent.paths() if "?" not in path]) + len(glue.asked) == 3
    assert clock.waited == 2.0


def test_a_message_that_the_other_side_skips_does_not_end_reading(confluent):
    """It is no error, so that those behind it are read."""
    options = {
        **options_of("json-registry", url=confluent.url, **{"ignore-parse-errors": "true"}),
        "error-handling.mode": "fail",
    }
    confluent.answers[f"/schemas/ids/{KNOWN}"] = [
        (200, {"schemaType": "JSON", "schema": '{"type": "object"}'})
    ]
    flood = [id_bytes(FIRST + number) + b"{}" for number in range(3)]
    rows = rows_of(options, [*flood, id_bytes(KNOWN) + b'{"id":1}'], ends_at_bad=True)
    assert read(rows) == [1]

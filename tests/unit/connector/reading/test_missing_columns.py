"""A warning where messages have none of the table's columns, such as Debezium's envelopes read with a flat schema."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from tests.unit.connector.reading.test_metadata import fake_batch
from tests.unit.connector.reading.test_rows import CHANGE, PLAIN, columns, decoder

ENVELOPE = (
    b'{"before":null,"after":{"id":1,"name":"secret"},"source":{"db":"d"},"op":"c","ts_ms":1}'
)
NAME = columns("name", CHANGE)


@pytest.fixture(autouse=True)
def nothing_warned(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing has been said yet in this process."""
    monkeypatch.setattr(errors, "_warned", set())
    caplog.set_level(logging.WARNING, "pyspark_upsert_kafka")


def batch(*values: bytes | None) -> Any:
    """Messages with these values."""
    return fake_batch(*((b'{"id":1}', value) for value in values))


@pytest.mark.parametrize("options", [{}, {"include": "EXCEPT_KEY"}, {"key": "id", "errors": "ignore"}])  # fmt: skip
def test_an_envelope_that_is_read_with_a_flat_schema(
    caplog: pytest.LogCaptureFixture, options: dict[str, str]
) -> None:
    """One warning for many batches, with the names of the fields, no value, and what to do."""
    rows = decoder(**options)
    for deletes in (1, 2, 3):
        rows.decode(batch(*[None] * deletes, ENVELOPE, ENVELOPE))

    (said,) = caplog.messages
    assert "Topic 'orders', partition 3, offset 1 and following messages" in said
    assert "The values have the fields 'before', 'after', 'source', 'op', 'ts_ms'." in said
    assert "'value.format' = 'debezium-json'" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None, None],
        [b"{}"],
        [b'{"id":1}', ENVELOPE],
        [b'{"name":null,"more":1}'],
        [ENVELOPE, b'{"name":null}'],
        [b"not JSON"],
    ],
)
def test_what_needs_no_warning(caplog: pytest.LogCaptureFixture, values: list[bytes]) -> None:
    """A column that is there and NULL, an object without fields, deletes, and what cannot be read at all."""
    decoder().decode(batch(*values))

    assert caplog.messages == []


def test_a_table_of_key_columns_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Where nothing is read of the value there is nothing that could be missing."""
    decoder(columns("id#", CHANGE), include="EXCEPT_KEY").decode(batch(ENVELOPE))

    assert caplog.messages == []


def test_a_format_without_names_of_fields(caplog: pytest.LogCaptureFixture) -> None:
    """Messages that name no fields can lack none."""
    csv = {"value.format": "csv", "value.csv.null-literal": "none"}
    decoder(columns("id#", "name", CHANGE), include="EXCEPT_KEY", **csv).decode(batch(b"none"))

    assert caplog.messages == []


def test_names_that_are_spelt_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    """Fields are found by their names in upper and lower case: what is there tells."""
    decoder().decode(batch(b'{"ID":1,"NAME":"a"}'))

    assert "none of the columns 'id', 'name'" in caplog.text
    assert "The values have the fields 'ID', 'NAME'." in caplog.text


def test_many_fields_with_long_names(caplog: pytest.LogCaptureFixture) -> None:
    """The text stays short whatever the messages hold."""
    names = ",".join(f'"{"x" * 1_000}{at}":1' for at in range(1_000))

    decoder().decode(batch(f"{{{names}}}".encode()))

    (said,) = caplog.messages
    assert "… and 990 more." not in said
    assert "' and 990 more." in said
    assert len(said) < 1_500


@pytest.mark.parametrize(("length", "end"), [(39, "'"), (40, "'"), (41, "…'")])
def test_names_of_forty_characters_are_shown_whole(
    caplog: pytest.LogCaptureFixture, length: int, end: str
) -> None:
    """Longer ones are cut there; up to ten are shown."""
    names = [f"{at}{'x' * (length - 1)}" for at in range(10)]
    decoder().decode(batch(json.dumps(dict.fromkeys(names, 1)).encode()))

    assert f"The values have the fields '{names[0][:40]}{end}, " in caplog.text
    assert f", '{names[9][:40]}{end}. Check the schema" in caplog.text


def test_ten_messages_are_looked_into(caplog: pytest.LogCaptureFixture) -> None:
    """Their fields are told together; a column that one of them has is no missing one."""
    values = [f'{{"f{at}":1}}'.encode() for at in range(9)]
    decoder().decode(batch(*values, b'{"name":null}'))
    assert caplog.messages == []
    decoder().decode(batch(*values, b'{"f9":1}', b'{"name":null}'))

    assert "'f0', " in caplog.text
    assert ", 'f9'. Check the schema" in caplog.text


def test_each_format_whose_messages_name_fields() -> None:
    """JSON names them, with a schema registry too; in the others a message without the columns is another matter."""
    for name, message in (("json", ENVELOPE), ("json-registry", b"\0\0\0\0\7" + ENVELOPE)):
        fields = format_named(name, "value").fields
        assert fields is not None
        assert list(fields(message)) == ["before", "after", "source", "op", "ts_ms"]
    assert [format_named(name, "value").fields for name in ("csv", "raw")] == [None, None]


def test_a_column_that_has_a_value_costs_no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are looked into only while a column is NULL in all of them."""

    def never(*_: object) -> None:
        raise AssertionError("a message was looked into")

    monkeypatch.setattr("pyspark_upsert_kafka.formats.json.json_document.parse_object", never)
    values = [b'{"id":1,"name":"a"}', *[b'{"id":1}'] * 100]

    rows = decoder(PLAIN)
    assert len(rows.decode(batch(*values))) == 101
    assert len(rows.decode(batch(*values[1:]))) == 100


def looks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The messages that are looked into from here on."""
    from pyspark_upsert_kafka.formats.json import json_document

    found: list[bytes] = []
    parse = json_document.parse_object

    def parsed(message: bytes) -> Any:
        found.append(message)
        return parse(message)

    monkeypatch.setattr(json_document, "parse_object", parsed)
    return found


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("Name", "They have 'Name'."),
        ("names", "They have 'names'."),
        ("other", "They have the fields 'id', 'other'."),
    ],
)
def test_a_column_that_no_message_has(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, field: str, told: str
) -> None:
    """It is told once, with the field that is meant, if one is like it; and is not looked for again."""
    looked_at = looks(monkeypatch)
    rows = decoder(PLAIN)
    for _ in range(3):
        rows.decode(batch(*[f'{{"id":1,"{field}":"a"}}'.encode()] * 20))

    (said,) = caplog.messages
    assert said.startswith("Column 'name' is NULL: no value that was looked at in topic 'orders' ")
    assert told in said
    assert len(looked_at) == 10


@pytest.mark.parametrize(
    ("value", "mode", "warnings"),
    [
        (b'{"id":1,"other":1}', "changelog", 0),
        (b'{"id":1,"other":1}', "snapshot", 1),
        (b'{"id":1,"NAME":1}', "changelog", 1),
        (b'{"name":"a","Id":1}', "snapshot", 0),
        (b'{"id":1,"name":null,"names":1}', "snapshot", 0),
    ],
)
def test_few_messages(
    caplog: pytest.LogCaptureFixture, value: bytes, mode: str, warnings: int
) -> None:
    """Those of a table are all there are; of changes, a field that is NULL may be left out. The key says its own columns."""
    is_stream = mode == "changelog"
    schema = PLAIN if is_stream else columns("id#", "name")
    decoder(schema, stream=is_stream).decode(batch(value))

    assert len(caplog.messages) == warnings


ADDRESS = "address STRUCT<City: STRING, zip: STRING, at: STRUCT<lat: INT>>"


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        (ADDRESS, '{"city":"Rome","zip":"1","at":{"lat":1}}', ["'address.City'", "They have 'address.city'."]),
        (ADDRESS, '{"town":"Rome","zip":"1","at":{"lat":1}}', ["'address.City'", "They have the fields 'address.town', "]),
        (ADDRESS, '{"City":"Rome","zip":"1","at":{"LAT":1}}', ["'address.at.lat'", "They have 'address.at.LAT'."]),
        ("address ARRAY<STRUCT<zip: INT, City: STRING>>", '[{"zip":1},{"zip":2,"city":""}]', ["'address.City'", "'address.city'"]),
        ("address MAP<STRING, STRUCT<zip: INT, City: STRING>>", '{"home":{"zip":1,"city":""}}', ["'address.City'", "'address.city'"]),
        (ADDRESS, '{"City":"Rome","zip":"1","at":{"lat":1}}', []),
        (ADDRESS, '{"City":null,"zip":null,"at":null}', []),
        (ADDRESS, "null", []),
        ("address ARRAY<STRUCT<zip: INT, City: STRING>>", "[]", []),
        ("address STRUCT<`.zip`: INT>", '{"zip":1}', ["'address..zip'", "'address.zip'"]),
        ("address STRUCT<zip: STRING, more: MAP<STRING, INT>>", '{"zip":"1","more":{}}', []),
    ],
)  # fmt: skip
def test_what_is_in_a_struct(
    caplog: pytest.LogCaptureFixture, schema: str, value: str, told: list[str]
) -> None:
    """A field in another spelling is told as a column is, by its path; what is there or has no row around it is not."""
    table = StructType([*columns("id#"), *spark_columns(schema)])
    messages = [f'{{"id":1,"address":{value}}}'.encode(), b'{"id":1,"address":null}']
    rows = decoder(table, stream=False)
    for _ in range(2):
        rows.decode(batch(*reversed(messages)))

    assert len(caplog.messages) == bool(told)
    assert all(each in caplog.text for each in told)


def test_a_struct_that_few_messages_have(caplog: pytest.LogCaptureFixture) -> None:
    """The messages that are looked into are those that have it, also of a CDC format."""
    value = b'{"id":1,"address":{"city":"Rome","zip":"1"}}'
    table = StructType(
        [*columns("id#"), *spark_columns("address STRUCT<City: STRING, zip: STRING>")]
    )
    decoder(table, stream=False).decode(batch(*[b'{"id":1,"address":null}'] * 50, value))
    (said,) = caplog.messages
    assert "They have 'address.city'." in said

    errors._warned.clear()
    envelopes = [b'{"op":"c","before":null,"after":%s}' % each for each in (b'{"id":2}', value)]
    debezium = {"key.format": None, "value.format": "debezium-json"}
    decoder(table, stream=False, **debezium).decode(batch(*envelopes, None))
    assert caplog.messages == [said] * 2

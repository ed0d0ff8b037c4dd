"""`scan.record-names`: a topic of several record types, read with each client as if it had only those of one."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest

from pyspark_upsert_kafka import DecodeError, read_changes, read_table
from pyspark_upsert_kafka.cli import main
from tests.conftest import Broker, options
from tests.kafka.conftest import Edge
from tests.unit.registry.fake_registry import FakeRegistry, serving

NAME = "avro-confluent"
ORDER_KEY, CUSTOMER_KEY, ORDER, CUSTOMER, NEWER_ORDER = range(1, 6)
SCHEMAS = {
    ORDER_KEY: {"type": "record", "name": "shop.OrderKey", "fields": [{"name": "id", "type": "long"}]},
    CUSTOMER_KEY: {"type": "record", "name": "shop.CustomerKey", "fields": [{"name": "mail", "type": "string"}]},
    ORDER: {
        "type": "record", "name": "shop.Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
    },
    CUSTOMER: {
        "type": "record", "name": "shop.Customer",
        "fields": [{"name": "mail", "type": "string"}, {"name": "age", "type": "int"}],
    },
    NEWER_ORDER: {
        "type": "record", "name": "shop.Order",
        "fields": [
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "id", "type": "long"}, {"name": "name", "type": "string"},
        ],
    },
}  # fmt: skip
ORDERS = {"scan.record-names": "shop.Order"}
COLUMNS = "id BIGINT, name STRING"


@pytest.fixture(scope="module")
def registry() -> Iterator[FakeRegistry]:
    """A registry with the schemas."""
    with serving() as found:
        for number, schema in SCHEMAS.items():
            found.schema(number, schema)
        yield found


def datum(number: int, row: Any) -> bytes:
    """A key or a value, behind the id of its schema."""
    written = io.BytesIO(b"\0" + number.to_bytes(4, "big"))
    written.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(written, fastavro.parse_schema(SCHEMAS[number]), row)
    return written.getvalue()


def order(id_: int, name: str | None, schema: int = ORDER) -> tuple[bytes, bytes | None]:
    """An order; without a name its deletion."""
    value = None if name is None else datum(schema, {"id": id_, "name": name, "note": None})
    return datum(ORDER_KEY, {"id": id_}), value


def customer(mail: str, age: int | None) -> tuple[bytes, bytes | None]:
    """A customer; without an age its deletion."""
    value = None if age is None else datum(CUSTOMER, {"mail": mail, "age": age})
    return datum(CUSTOMER_KEY, {"mail": mail}), value


def given(
    broker: Broker, topic: str, url: str, edge: Edge | None = None, **more: Any
) -> dict[str, str]:
    """Options of the table."""
    client: dict[str, str] = {}
    if edge is not None:
        client = {"kafka.client": edge.client}
        if not edge.has_transactions:
            client |= {"properties.isolation.level": "read_uncommitted"}
    return options(
        broker, topic, key__format=NAME, value__format=NAME,
        **{f"{side}.{NAME}.url": url for side in ("key", "value")}, **client, **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def mixed(broker: Broker) -> str:
    """Orders 1 to 3, of which 2 is deleted, among customers, whose keys and values no table of orders could read."""
    topic = broker.topic()
    same_key = order(3, "c")[0], customer("c", 9)[1]
    broker.produce(
        topic, customer("a", 1), order(1, "a"), order(2, "b"), customer("a", None), order(3, "c"), order(1, "d", NEWER_ORDER),
        order(2, None), customer("b", 2), same_key, customer("a", None),
    )  # fmt: skip
    return topic


def rows(found: Any) -> list[tuple[Any, ...]]:
    """The rows of batches."""
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


@pytest.mark.every_client
@pytest.mark.parametrize(
    "more", [{}, {"minPartitions": 3}, {"scan.snapshot.merge-partitions": "true"}]
)
def test_the_table_of_one_type(broker, registry, mixed, edge, more):
    """A customer with the key of an order does not hide the order; deletes of customers delete no order, and fail nothing."""
    it = given(broker, mixed, registry.url, edge, **ORDERS, **more)

    assert sorted(rows(read_table(it, schema=COLUMNS))) == [(1, "d"), (3, "c")]


@pytest.mark.every_client
def test_the_changes_of_one_type(broker, registry, mixed, edge):
    """Each order and its deletion, once, and nothing of customers; what was passed over is behind the position."""
    it = given(broker, mixed, registry.url, edge, **ORDERS)
    shown = f"{COLUMNS}, _offset BIGINT, _change_type STRING"

    with read_changes(it, schema=shown, start="earliest", stop_at_end=True) as changes:
        found = rows(changes)
        assert changes.caught_up

    assert found == [
        (1, "a", 1, "upsert"), (2, "b", 2, "upsert"), (3, "c", 4, "upsert"), (1, "d", 5, "upsert"),
        (2, None, 6, "delete"),
    ]  # fmt: skip


def test_the_table_and_then_its_changes_of_one_type(broker, registry):
    """A restart between messages of other types loses and repeats nothing."""
    topic = broker.topic()
    broker.produce(topic, customer("a", 1), order(1, "a"), customer("a", 2))
    it = given(broker, topic, registry.url, **ORDERS)
    with read_changes(it, schema=COLUMNS, stop_at_end=True) as changes:
        assert rows(changes) == [(1, "a", "upsert")]
        position = changes.position
    broker.produce(topic, customer("a", 3), order(1, "b"), customer("a", None), order(1, None))

    with read_changes(it, schema=COLUMNS, stop_at_end=True, position=position) as changes:
        assert rows(changes) == [(1, "b", "upsert"), (1, None, "delete")]


def test_only_wanted_messages_are_bad_messages(broker, registry):
    """Of an unknown id nobody knows the type: it fails, or is a dead letter; a customer is neither."""
    topic, letters = broker.topic(), broker.topic()
    key, _ = order(5, "e")
    broker.produce(
        topic,
        customer("a", 1),
        (key, b"\0\0\0\0\x63\2"),
        order(1, "a"),
        (None, customer("b", 1)[1]),
    )
    it = given(broker, topic, registry.url, **ORDERS)

    with pytest.raises(DecodeError, match=r"offset 1.*Schema id 99 is not in the schema registry"):
        rows(read_table(it, schema=COLUMNS))

    log = {"error-handling.mode": "log", "error-handling.log.target": letters}
    assert rows(read_table(it, schema=COLUMNS, **log)) == [(1, "a")]
    assert [each.value for each in broker.messages(letters)] == [b"\0\0\0\0\x63\2"]


def arguments(it: dict[str, str]) -> list[str]:
    """The same options for a command."""
    named = [word for name, text in it.items() for word in ("--option", f"{name}={text}")]
    return ["--schema", COLUMNS, *named]


def test_show_counts_and_finds_the_messages_of_one_type(broker, registry, mixed, capsys):
    """As if there were no others."""
    chosen = arguments(given(broker, mixed, registry.url, **ORDERS))

    assert main(["show", *chosen, "--output", "csv"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == ["1,d", "3,c", "id,name"]
    assert main(["show", *chosen, "--key", "id=3", "--output", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == ["id,name", "3,c"]
    assert main(["show", *chosen, "--count", "--output", "json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert (counts["live_keys"], counts["tombstones"], counts["messages"]) == (2, 1, 5)


def test_a_name_that_no_message_has_is_told_where_the_query_starts(broker, registry, mixed, caplog):
    """An empty table is no silent success: the types that were seen, and the one that is meant."""
    it = given(broker, mixed, registry.url, **{"scan.record-names": "shop.Ordr;Invoice"})

    assert rows(read_table(it, schema=COLUMNS)) == []

    (told,) = {each.message for each in caplog.records if each.levelname == "WARNING"}
    assert "None of the 10 newest messages" in told
    assert "'shop.Customer', 'shop.Order'. Is 'shop.Order' meant by 'shop.Ordr'?" in told


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        ("shop.Order;shop.Custmer", "'shop.Customer' meant by 'shop.Custmer'"),
        ("Custmer;Order", "'shop.Customer' meant by 'Custmer'"),
        ("shop.Order;shp.Customer", "'shop.Customer' meant by 'shp.Customer'"),
        ("shop.Order;shop.Invoice", None),
        ("shop.Order;shop.Orders", None),
        ("shop.Order;Customer", None),
    ],
)
def test_a_name_that_is_nearly_that_of_a_skipped_type_is_told(
    broker, registry, mixed, caplog, names, meant
):
    """Also if another name has messages. A type that is named may be rare: without a skipped type of nearly its name nothing is said."""
    it = given(broker, mixed, registry.url, **{"scan.record-names": names})

    assert rows(read_table(it, schema=COLUMNS, **{"error-handling.mode": "ignore"}))

    told = [each.message for each in caplog.records if "'scan.record-names' names" in each.message]
    assert len(told) == (meant is not None)
    assert all(meant in text and "skipped" in text for text in told)


@pytest.mark.parametrize(
    ("names", "level", "text"),
    [
        ("shop.Order", "ok", "each record type"),
        ("shop.Order;shop.Custmer", "warning", "'shop.Custmer'. Record types that were seen"),
        (
            "Nothing",
            "warning",
            "'Nothing'. Record types that were seen: 'shop.Customer', 'shop.Order'",
        ),
    ],
)
def test_doctor_says_which_record_types_the_sample_has(
    broker, registry, mixed, capsys, names, level, text
):
    """A name that no message of the sample has is a warning."""
    chosen = arguments(given(broker, mixed, registry.url, **{"scan.record-names": names}))

    main(["doctor", *chosen, "--output", "json"])

    found = {each["check"]: each for each in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["record-names"]["level"] == level
    assert text in found["record-names"]["text"]


def test_messages_without_keys_are_told_where_the_query_starts(broker, caplog):
    """A table of a topic whose messages have no keys is empty with 'ignore'; the driver's log says why."""
    topic = broker.topic()
    broker.produce(topic, *[(None, b'{"id":1,"name":"a"}')] * 3)
    it = options(broker, topic, **{"error-handling.mode": "ignore"})

    assert rows(read_table(it, schema=COLUMNS)) == []

    told = [each.message for each in caplog.records if "newest messages" in each.message]
    assert len(told) == 1
    assert "3 cannot be read: the message has no key" in told[0]


def test_the_envelope_of_connect_is_told_where_the_query_starts(broker, caplog):
    """Read as plain JSON and skipped, the warning says what it is and what to set."""
    topic = broker.topic()
    envelope = b'{"schema":{"type":"struct","fields":[]},"payload":{"id":1,"name":"a"}}'
    broker.produce(topic, (b'{"id":1}', envelope))
    it = options(broker, topic, **{"error-handling.mode": "ignore"})

    assert rows(read_table(it, schema=COLUMNS)) == []

    (told,) = [each.message for each in caplog.records if "newest messages" in each.message]
    assert "the envelope of Kafka Connect's JSON converter" in told
    assert "schemas.enable" in told


def test_nothing_is_told_of_a_table_with_rows_or_deletes(broker, registry, mixed, caplog):
    """One row, or one delete, is enough."""
    topic = broker.topic()
    broker.produce(topic, (b'{"id":1}', None), (None, b"{}"))
    it = options(broker, topic, **{"error-handling.mode": "ignore"})
    rows(read_table(it, schema=COLUMNS))
    rows(read_table(given(broker, mixed, registry.url, **ORDERS), schema=COLUMNS))

    assert not [each for each in caplog.records if "newest messages" in each.message]


def test_deletes_of_other_types_count_nowhere(broker, registry, capsys, caplog):
    """Where the bytes of a key name no schema, its columns say that a tombstone is none of the table's."""
    topic = broker.topic()
    broker.produce(
        topic, ('{"mail":"a"}', None), ('{"id":1}', order(1, "a")[1]), ('{"id":2}', order(2, "b")[1]), ('{"id":2}', None),
        ('{"mail":"b"}', None), ('{"mail":"a"}', None),
    )  # fmt: skip
    it = options(broker, topic, value__format=NAME, **{f"value.{NAME}.url": registry.url}, **ORDERS)

    assert main(["show", *arguments(it), "--count", "--output", "json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert (counts["live_keys"], counts["tombstones"], counts["messages"]) == (1, 1, 3)
    assert main(["show", *arguments(it), "--key", "id=1", "--output", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == ["id,name", "1,a"]
    assert not caplog.records
    main(["doctor", *arguments(it), "--output", "json"])
    found = {each["check"]: each for each in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["sample"]["text"].startswith("3 messages read")
    assert found["key-spelling"]["level"] == "ok"


def test_keys_of_other_types_do_not_make_a_key_be_looked_for_everywhere(
    broker, registry, capsys, caplog
):
    """Whether keys are where they should be, is told by those of the table."""
    topic = broker.topic()
    broker.produce(
        topic, ('{"mail":"a"}', customer("a", 1)[1]), ('{"id":1}', order(1, "a")[1]),
        ('{"mail":"b"}', customer("b", 1)[1]),
    )  # fmt: skip
    it = options(broker, topic, value__format=NAME, **{f"value.{NAME}.url": registry.url}, **ORDERS)

    assert main(["show", *arguments(it), "--key", "id=1", "--output", "csv"]) == 0

    assert capsys.readouterr().out.splitlines() == ["id,name", "1,a"]
    assert not caplog.records

"""Topics whose messages name their schemas in headers, and others in their bytes, read with each client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pyspark_upsert_kafka import DecodeError, read_table
from pyspark_upsert_kafka.cli import main
from tests.conftest import Broker, options
from tests.guid_registry import GuidRegistry, avro_message, guid_registry
from tests.kafka.conftest import Edge
from tests.unit.registry import fake_registry

KEY, VALUE = "__key_schema_id", "__value_schema_id"


@pytest.fixture(scope="module")
def guids() -> Iterator[GuidRegistry]:
    """A registry that knows GUIDs."""
    with guid_registry() as registry:
        yield registry


def given(
    broker: Broker, topic: str, url: str, edge: Edge | None = None, **more: Any
) -> dict[str, str]:
    """Options of the table."""
    client = {}
    if edge is not None:
        client = {"kafka.client": edge.client}
        if not edge.has_transactions:
            client |= {
                "properties.isolation.level": "read_uncommitted",
                "properties.enable.idempotence": "false",
            }
    name = "avro-confluent"
    return options(
        broker, topic, key__format=name, value__format=name,
        **{f"{side}.{name}.url": url for side in ("key", "value")}, **client, **more,
    )  # fmt: skip


def row(
    guids: GuidRegistry, topic: str, id_: int, name: str | None, in_header: bool
) -> tuple[Any, ...]:
    """A message that Confluent's serializers make; without a name a delete."""
    datum = None if name is None else {"id": id_, "name": name}
    return avro_message(guids, datum, id_, in_header, topic)


@pytest.fixture(scope="module")
def mixed(broker: Broker, guids: GuidRegistry) -> str:
    """A topic of two partitions in which every other message names its schema in a header."""
    topic = broker.topic(2)
    for at in range(60):
        broker.produce(
            topic,
            row(guids, topic, at % 20, None if at == 59 else f"n{at}", at % 3 == 1),
            partition=at % 20 % 2,
        )
    return topic


ROWS = [(at % 20, f"n{at}") for at in range(40, 59)]


def rows(it: dict[str, str], **more: Any) -> list[tuple[Any, ...]]:
    """The table, sorted."""
    return sorted(
        tuple(each.values())[:2] for each in read_table(it, **more).read_all().to_pylist()
    )


@pytest.mark.every_client
@pytest.mark.parametrize(
    "more",
    [{}, {"minPartitions": 5}, {"scan.snapshot.merge-partitions": "true", "read.mode": "snapshot"}, {"error-handling.mode": "ignore"}],
)  # fmt: skip
def test_the_table_of_both_forms(broker, guids, mixed, edge, more):
    """Its columns are those of the registry; each message is read by where it names its schema."""
    assert rows(given(broker, mixed, guids.url, edge, **more)) == sorted(ROWS)


@pytest.mark.every_client
@pytest.mark.parametrize("framed", ["none", "some", "all"])
def test_json_that_begins_with_an_id_needs_no_header(broker, edge, framed):
    """A client need not look for one there, since JSON begins otherwise; each message is read, by its header where it has no id."""
    name, client = "json-registry", dict[str, str]()
    if not edge.has_transactions:
        client = {
            "properties.isolation.level": "read_uncommitted",
            "properties.enable.idempotence": "false",
        }
    begin = b"\0" + (7).to_bytes(4, "big")
    wrong = [(VALUE, b"\0" + (9).to_bytes(4, "big"))]
    ids, headers = (
        {"none": (b"", b""), "some": (begin, b""), "all": (begin, begin)}[framed],
        [(VALUE, begin)],
    )
    topic = broker.topic()
    broker.produce(
        topic,
        (b'{"id":1}', ids[0] + b'{"n":"a"}', wrong if ids[0] else headers),
        (b'{"id":2}', ids[1] + b'{"n":"b"}', [("x", b"y")] if ids[1] else headers),
        (b'{"id":3}', None, headers),
        (b'{"id":4}', ids[0] + b'{"n":"d"}', [] if ids[0] else headers),
    )
    with fake_registry.serving() as registry:
        registry.schema(7, {"type": "object"}, schemaType="JSON")
        it = options(
            broker, topic, value__format=name,
            **{f"value.{name}.url": registry.url, "kafka.client": edge.client, **client},
        )  # fmt: skip
        found = rows(it, schema="id BIGINT, n STRING")
    assert found == [(1, "a"), (2, "b"), (4, "d")]


@pytest.mark.every_client
def test_a_header_that_names_no_schema(broker, guids, edge):
    """The error says where, and which header; the dead letter has all headers as they were."""
    topic, letters = broker.topic(), broker.topic()
    key, value, headers = row(guids, topic, 1, "a", True)
    broker.produce(
        topic, (key, value, headers), (key, value, [*headers, ("x", b"y"), (VALUE, b"\1short")])
    )
    it = given(broker, topic, guids.url, edge)

    with pytest.raises(
        DecodeError,
        match=rf"topic '{topic}', partition 0, offset 1.*header '{VALUE}' names no schema",
    ):
        rows(it)

    log = {"error-handling.mode": "log", "error-handling.log.target": letters}
    assert rows(given(broker, topic, guids.url, edge, **log)) == [(1, "a")]
    (letter,) = broker.messages(letters)
    assert (letter.key, letter.value) == (key, value)
    assert list(letter.headers[:4]) == [*headers, ("x", b"y"), (VALUE, b"\1short")]


def test_dead_letters_go_back_with_their_headers(broker, guids):
    """Once the schema is known, the message is read as if it had never been put aside."""
    topic, letters = broker.topic(), broker.topic()
    good = row(guids, topic, 1, "a", True)
    broker.produce(topic, (good[0], good[1], [good[2][0], (VALUE, b"\1" + bytes(16))]), good)
    bad = row(guids, topic, 2, "b", True)
    broker.produce(topic, (bad[0], bad[1], [bad[2][0], (VALUE, b"\1" + b"2" * 16)]))
    log = {"error-handling.mode": "log", "error-handling.log.target": letters}
    assert rows(given(broker, topic, guids.url, **log)) == [(1, "a")]
    guids.client._store.schema_guid_index["32323232-3232-3232-3232-323232323232"] = (
        guids.client.get_latest_version(f"{topic}-value")
    )

    assert (
        main(["replay", "--topic", letters, "--bootstrap-servers", broker.servers, "--to", topic])
        == 0
    )

    with guid_registry() as other:
        other.client = guids.client
        assert rows(given(broker, topic, other.url, **{"error-handling.mode": "ignore"})) == [
            (1, "a"),
            (2, "b"),
        ]


def arguments(broker: Broker, topic: str, url: str, **more: Any) -> list[str]:
    """The same options for a command."""
    it = given(broker, topic, url, **more)
    return [word for name, text in it.items() for word in ("--option", f"{name}={text}")]


def test_show_and_doctor(broker, guids, mixed, capsys):
    """Both read each form, and a key that is asked for."""
    chosen = arguments(broker, mixed, guids.url)

    assert main(["show", *chosen, "--key", "id=3", "--output", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == ["id,name", "3,n43"]
    assert main(["show", *chosen, "--count"]) == 0
    assert "19" in capsys.readouterr().out
    main(["doctor", *chosen])
    said = capsys.readouterr().out
    assert "can be decoded" in said or "bad" in said


@pytest.mark.long("a registry is waited for")
def test_a_registry_that_is_away(broker, guids, mixed):
    """It is not the messages' fault: nothing is skipped."""
    from pyspark_upsert_kafka import BrokerError

    it = given(broker, mixed, "http://127.0.0.1:1", **{"error-handling.mode": "ignore"})
    with pytest.raises(BrokerError, match="gives no answer"):
        rows(it, schema="id BIGINT, name STRING")

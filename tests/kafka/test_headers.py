"""Headers whose keys are not UTF-8: any client may write them, and none for Python can read them."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.metadata import SCHEMA_IDS, Detail
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.kafka.conftest import CLIENTS, Edge
from tests.raw_produce import produce_raw

_BAD = [(b"good", b"1"), (b"\xff\xfe", b"2")]


@pytest.mark.every_client
def test_headers_that_cannot_be_read_are_told_of_their_message(broker, edge):
    """Of that message alone; the others have theirs, and all have keys and values."""
    topic = broker.topic()
    broker.produce(topic, (b"a", b"1", [("h", b"x"), ("h", b"")]))
    produce_raw(broker.servers, topic, b"b", b"2", _BAD)
    broker.produce(topic, (b"c", b"3"))
    produce_raw(broker.servers, topic, b"d", None, [(b"\xc3\xa9", b"\xff"), (b"", None)])

    batch = _whole(edge.batches(Range(topic, 0, 0, 4)))

    assert batch["keys"] == [b"a", b"b", b"c", b"d"]
    assert batch["values"] == [b"1", b"2", b"3", None]
    assert batch["headers"] == [
        [("h", b"x"), ("h", b"")],
        [],
        [],
        [("é", b"\xff"), ("", None)],
    ]
    assert list(batch["bad"]) == [1]
    assert "not UTF-8" in batch["bad"][1]


def test_headers_that_nobody_asked_for_are_not_read(broker, edge):
    """Without details the same message is one as any other."""
    topic = broker.topic()
    produce_raw(broker.servers, topic, b"b", b"2", _BAD)

    batch = _whole(edge.batches(Range(topic, 0, 0, 1), details=frozenset()))

    assert (batch["keys"], batch["values"], batch["bad"]) == ([b"b"], [b"2"], {})


def _whole(batches):
    """What came, as if in one batch."""
    keys, values, headers, bad = [], [], [], {}
    for batch in batches:
        bad |= {len(keys) + at: why for at, why in batch.bad_headers.items()}
        keys += batch.keys
        values += batch.values
        headers += [list(each) for each in batch.headers]
    return {"keys": keys, "values": values, "headers": headers, "bad": bad}


_IDS = frozenset(SCHEMA_IDS.values())


@pytest.mark.every_client
def test_schema_ids_in_headers(broker, edge):
    """Each message has its own, the last of several, whatever other headers it has; for a batch without any there is no column."""
    topic, key, value = broker.topic(), "__key_schema_id", "__value_schema_id"
    headers = [
        [],
        [("h", b"1")],
        [(value, b"\x01a"), ("h", None), (value, b"\x00b"), (key, b"k")],
        [],
        [(value, b"")],
        [(value, b"c"), (value, None)],
        [(value + "s", b"d"), (key[:-1], b"e")],
        [(f"{at}", b"x" * 50) for at in range(100)] + [(value, b"f")],
    ]
    broker.produce(topic, *((b"k%d" % at, b"v", each) for at, each in enumerate(headers)))
    produce_raw(broker.servers, topic, b"k8", b"v", [(b"good", b"1")])

    found = _joined(edge.batches(Range(topic, 0, 0, 9), details=_IDS))

    assert found.keys == [b"k%d" % at for at in range(9)]
    assert found.headers == []
    assert found.schema_ids == {
        Detail.VALUE_SCHEMA_ID: [None, None, b"\x00b", None, b"", None, None, b"f", None],
        Detail.KEY_SCHEMA_ID: [None, None, b"k", None, None, None, None, None, None],
    }
    assert _joined(edge.batches(Range(topic, 0, 0, 2), details=_IDS)).schema_ids == {}
    both = _joined(edge.batches(Range(topic, 0, 0, 9), details=_IDS | {Detail.HEADERS}))
    assert both.schema_ids == found.schema_ids
    assert [list(each) for each in both.headers[:8]] == headers


@pytest.mark.every_client
def test_schema_ids_of_many_messages(broker, edge):
    """Whichever of the messages have them."""
    topic, name = broker.topic(), "__value_schema_id"
    ids = [b"%d" % at if at % 7 == 3 or at > 4_000 else None for at in range(8_000)]
    broker.produce(topic, *((b"k", b"v", each and [(name, each)]) for each in ids))

    found = _joined(edge.batches(Range(topic, 0, 0, 8_000), details=_IDS))

    assert found.schema_ids == {Detail.VALUE_SCHEMA_ID: ids}


@pytest.mark.every_client
@pytest.mark.parametrize("client", CLIENTS)
def test_schema_ids_beside_headers_that_cannot_be_read(broker, client):
    """Other headers do not matter where nobody wants them; a message whose headers are wanted is told of."""
    topic = broker.topic()
    produce_raw(broker.servers, topic, b"b", b"2", [(b"\xff", b"1"), (b"__value_schema_id", b"7")])
    edge = Edge(client, broker.servers)

    (batch,) = edge.batches(Range(topic, 0, 0, 1), details=_IDS)
    assert batch.schema_ids == {Detail.VALUE_SCHEMA_ID: [b"7"]}
    assert batch.bad_headers == {}

    (batch,) = edge.batches(Range(topic, 0, 0, 1), details=_IDS | {Detail.HEADERS})
    assert batch.schema_ids == {}
    assert [*batch.bad_headers] == [0]


def test_the_epoch_of_a_leader_is_taken_with_all_headers(broker):
    """By librdkafka: a message of which one cannot be read is told of."""
    topic = broker.topic()
    produce_raw(broker.servers, topic, b"b", b"2", [(b"\xff", b"1"), (b"__value_schema_id", b"7")])

    (batch,) = Edge("librdkafka", broker.servers).batches(
        Range(topic, 0, 0, 1), details=_IDS | {Detail.LEADER_EPOCH}
    )
    assert batch.schema_ids == {}
    assert [*batch.bad_headers] == [0]


def _joined(batches):
    """What came, in one batch."""
    return RawBatch.joined(list(batches))

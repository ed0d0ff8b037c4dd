"""Headers whose keys are not UTF-8: any client may write them, and none for Python can read them."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.positions.offsets import Range
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

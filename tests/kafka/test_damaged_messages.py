"""A bit of a broker's log that has flipped: a broker sends messages as they lie there, and only their reader can see it."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.metadata import ALL_DETAILS, Detail
from pyspark_upsert_kafka.core.positions.offsets import Range
from tests.conftest import broker_at
from tests.kafka.conftest import CLIENTS, Edge

pytestmark = pytest.mark.long("stops a broker of its own, to change its log")

VALUES = [b"first"] * 3 + [b"second"] * 3 + [b"third"] * 3


@pytest.fixture(scope="module")
def damaged(_stoppable: LocalKafka) -> tuple[str, str]:
    """The address of a broker, and a topic of three batches of which the second has another bit than was sent."""
    _stoppable.start()
    broker = broker_at(_stoppable.bootstrap_servers)
    topic = broker.topic()
    for value in (b"first", b"second", b"third"):
        broker.produce(topic, *[(b"k", value)] * 3)
    _stoppable.stop()
    assert _stoppable._node is not None
    (log,) = _stoppable._node.folder.glob(f"**/{topic}-0/*.log")
    data = bytearray(log.read_bytes())
    data[data.index(b"second")] ^= 1
    log.write_bytes(data)
    _stoppable.start()
    return _stoppable.bootstrap_servers, topic


@pytest.mark.parametrize("details", [frozenset(), ALL_DETAILS], ids=["in batches", "one by one"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_flipped_bit_is_an_error_and_no_row(
    damaged: tuple[str, str], client: str, details: frozenset[Detail]
) -> None:
    """After the messages before it, and with its place; without the check, what is there is read as it is."""
    servers, topic = damaged
    edge = Edge(client, servers, details=details)
    batches = edge.batches(Range(topic, 0, 0, 9))

    assert [*next(batches).values] == VALUES[:3]
    with pytest.raises(BrokerError) as error:
        next(batches)
    assert str(error.value).startswith(
        f"Topic '{topic}', partition 0, offset 3 (reading 0 to 9) at '{servers}' cannot be read: the broker's copy of the "
        "messages from this offset on is damaged"
    )
    assert edge.values(Range(topic, 0, 0, 3)) == VALUES[:3]
    assert edge.values(Range(topic, 0, 6, 9)) == VALUES[6:]
    unchecked = edge.given({"check.crcs": "false"}).values(Range(topic, 0, 0, 9))
    assert unchecked == [*VALUES[:3], b"recond", *VALUES[4:]]

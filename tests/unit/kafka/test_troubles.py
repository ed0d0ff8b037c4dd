"""Brokers that are away, hang, move leaders or end connections, on a clock that only waiting moves.

The same with real brokers is in ``tests/kafka``: test_outage, test_hung_broker, test_leader_moves, test_idle and
test_many_topics, which take minutes.
"""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import RetriableBrokerError
from pyspark_upsert_kafka.core.options.frozen_options import Topics
from pyspark_upsert_kafka.core.positions.offsets import Range
from tests.unit.kafka.scripted_broker import FOR_EVER, ScriptedBroker, Span

RANGE = Range("t", 0, 0, 100, topic_id="id of t")
WHOLE = list(range(100))
SHORT = {"request_timeout_ms": 2_000, "default_api_timeout_ms": 4_000}

BEFORE, MIDDLE, TWICE = [(0.0, 300.0)], [(0.5, 300.0)], [(0.0, 100.0), (100.5, 300.0)]
"""Before the first message of the range, in the middle of it, and both."""


@pytest.mark.parametrize("spans", [BEFORE, MIDDLE, TWICE])
@pytest.mark.parametrize("trouble", ["away", "hung"])
def test_a_range_is_read_on_after_an_outage(trouble: str, spans: list[Span]) -> None:
    """Each offset once, whether brokers were away or hung, if that ends within the time of an outage."""
    broker = ScriptedBroker(**{trouble: spans})

    assert broker.offsets(RANGE, outage_s=600.0) == WHOLE
    assert 300 < broker.passed_s < 320


@pytest.mark.parametrize("trouble", ["away", "hung"])
@pytest.mark.parametrize("begin", [0.0, 0.5])
def test_an_outage_that_lasts_too_long_is_an_error(trouble: str, begin: float) -> None:
    """Before the first message and after it: it says how long brokers were waited for, and by which option."""
    broker = ScriptedBroker(**{trouble: [(begin, FOR_EVER)]})

    told = r"has answered for 50 seconds, the time of 'scan\.outage\.timeout'"
    with pytest.raises(RetriableBrokerError, match=told):
        broker.offsets(RANGE, outage_s=50.0, **SHORT)
    assert 50 < broker.passed_s < 70


@pytest.mark.parametrize("trouble", ["away", "hung"])
@pytest.mark.parametrize("begin", [0.0, 0.5])
def test_without_time_for_an_outage_it_is_an_error_within_that_of_an_answer(
    trouble: str, begin: float
) -> None:
    """The message says where, and what to raise."""
    broker = ScriptedBroker(**{trouble: [(begin, FOR_EVER)]})

    with pytest.raises(RetriableBrokerError, match="answered within 4 seconds"):
        broker.offsets(RANGE, **SHORT)
    assert broker.passed_s < 5 + 2 * 4 + 1


def test_a_broker_that_hangs_for_less_than_messages_are_waited_for_is_no_error() -> None:
    """Also without time for an outage: requests and polls go on when it does."""
    broker = ScriptedBroker(hung=[(0.5, 100.0)])

    assert broker.offsets(RANGE) == WHOLE
    assert 100 < broker.passed_s < 110


@pytest.mark.parametrize("trouble", ["away", "hung"])
def test_a_request_waits_until_a_broker_is_back(trouble: str) -> None:
    """A connection that has waited out an outage asks on, and for the next one it has all the time again."""
    broker = ScriptedBroker(**{trouble: [(0.0, 500.0), (501.0, 1001.0)]})
    cluster = broker.cluster(**SHORT)
    cluster.wait_out(600.0)

    for ended in (500, 1001):
        view = cluster.view(cluster.topics(Topics(("t",))), read_committed=True)
        assert [each.latest for each in view.bounds.values()] == [100]
        assert ended < broker.passed_s < ended + 10
        broker.clock.sleep(max(0.0, 502 - broker.passed_s))


@pytest.mark.parametrize("spans", [[(0.0, 40.0)], [(0.5, 40.0)], [(0.2, 20.0), (20.5, 40.0)]])
def test_a_leader_that_moves_is_followed(
    spans: list[Span], caplog: pytest.LogCaptureFixture
) -> None:
    """Each offset once, and bounds that are true, though for a while there is no leader: that is no loss and no outage."""
    broker = ScriptedBroker(leaderless=spans)

    assert broker.offsets(RANGE) == WHOLE
    assert 40 < broker.passed_s < 50

    asked = ScriptedBroker(leaderless=spans)
    cluster = asked.cluster()
    view = cluster.view(cluster.topics(Topics(("t",))), read_committed=True)
    assert [each.latest for each in view.bounds.values()] == [100]
    assert caplog.records == []


def test_a_partition_that_gets_no_leader_is_an_error() -> None:
    """However long brokers that are away would be waited for: these answer."""
    broker = ScriptedBroker(leaderless=[(0.0, FOR_EVER)])
    cluster = broker.cluster(**SHORT)
    cluster.wait_out(600.0)

    with pytest.raises(RetriableBrokerError, match="answered within 4 seconds"):
        cluster.view(cluster.topics(Topics(("t",))), read_committed=True)
    assert broker.passed_s < 6
    with pytest.raises(RetriableBrokerError, match="nothing arrived for"):
        broker.offsets(RANGE, outage_s=600.0, **SHORT)


def test_connections_that_were_idle_may_have_been_ended(caplog: pytest.LogCaptureFixture) -> None:
    """By brokers and by networks: what asks connects anew, also where it has little time for an answer."""
    broker = ScriptedBroker(idle_s=540.0)
    cluster = broker.cluster(**SHORT)

    for _ in range(3):
        view = cluster.view(cluster.topics(Topics(("t",))), read_committed=True)
        assert [each.latest for each in view.bounds.values()] == [100]
        assert broker.offsets(RANGE, **SHORT) == WHOLE
        broker.clock.sleep(3600)
    assert caplog.records == []


def test_a_topic_costs_as_many_lookups_however_many_were_read_before() -> None:
    """One before its first range and one after each, of itself alone: a second's ranges share the first."""
    topics = [f"t{number}" for number in range(60)]
    broker = ScriptedBroker(partitions=dict.fromkeys(topics, 10), messages=1)

    for topic in topics:
        for partition in range(10):
            range_ = Range(topic, partition, 0, 1, topic_id=f"id of {topic}")
            assert broker.offsets(range_) == [0]

    assert set(broker.lookups.values()) == {11}

"""Answers of a broker that are lost, late, cut off or errors, one kind of request after another."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.positions.offsets import Range
from tests.conftest import Broker
from tests.kafka.conftest import CLIENTS, eventually
from tests.kafka.fault_proxy import Api, Fault, Kind
from tests.kafka.fault_table import MOST_S, PATIENT, WORKS, outcome, proxied, table
from tools.fault_table import fault_table_text, shown_table

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"

BY_NAME = {work.name: work for work in WORKS}

CHEAP = [
    ("planning", Fault(Api.METADATA, Kind.CUT)),
    ("planning", Fault(Api.LIST_OFFSETS, Kind.ERROR, code=6)),
    ("starting at a group's offsets", Fault(Api.FIND_COORDINATOR, Kind.LOST)),
    ("starting at a group's offsets", Fault(Api.OFFSET_FETCH, Kind.ERROR, code=14)),
    ("reading", Fault(Api.FETCH, Kind.ERROR, code=-1)),
    ("reading", Fault(Api.FETCH, Kind.TRUNCATED)),
    ("reading", Fault(Api.FIND_COORDINATOR, Kind.ERROR, code=-1, times=1000)),
    ("writing", Fault(Api.DESCRIBE_CONFIGS, Kind.ERROR, code=-1)),
    ("writing", Fault(Api.PRODUCE, Kind.CUT)),
    ("writing exactly once", Fault(Api.ADD_PARTITIONS_TO_TXN, Kind.CUT)),
    ("writing exactly once", Fault(Api.TXN_OFFSET_COMMIT, Kind.ERROR, code=14)),
    ("writing exactly once", Fault(Api.END_TXN, Kind.CUT)),
]


@pytest.mark.parametrize(
    ("name", "fault"), CHEAP, ids=[f"{name}, {fault.api.name} {fault.kind.value}" for name, fault in CHEAP]
)  # fmt: skip
def test_everything_goes_on_after_a_fault(broker: Broker, name: str, fault: Fault) -> None:
    """One answer that does not come, or is an error that passes, fails nothing, and every message is there once."""
    found = outcome(broker, BY_NAME[name], fault, PATIENT)

    assert found.error is None
    assert found.seen


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.long("waits until a fetch that is never answered is given up")
@pytest.mark.alone("asserts that it is not waited for until the request timeout")
def test_no_range_waits_for_the_fetch_of_another(broker: Broker, client: str) -> None:
    """The consumer fetches on when a range ends. If that is never answered, the next range gets a new consumer."""
    patient = {"request.timeout.ms": 60_000, "default.api.timeout.ms": 120_000}
    with proxied(broker, client) as (proxy, brief, topic):
        edge = brief.given({**patient, "max.partition.fetch.bytes": 1_000_000})
        with proxy.fault(Fault(Api.FETCH, Kind.LOST, after=1)) as fault:
            assert edge.offsets(Range(topic, 0, 0, 3)) == [0, 1, 2]
            eventually(lambda: fault.seen, 5)
            began = time.monotonic()
            assert edge.offsets(Range(topic, 0, 0, 3)) == [0, 1, 2]

    assert time.monotonic() - began < 30


@pytest.mark.long("waits for the timeout of all attempts, and for answers that come later")
def test_a_coordinator_that_answers_too_late_is_an_error_and_no_more(broker: Broker) -> None:
    """Nor does librdkafka end the process then, which it does where its admin client has given up."""
    brief = {"request.timeout.ms": 1_000, "default.api.timeout.ms": 3_000}
    with proxied(broker, "librdkafka") as (proxy, client, topic):
        edge = client.given({**brief, "group.id": f"g-{topic}"})
        late = Fault(Api.FIND_COORDINATOR, Kind.LATE, seconds=4, times=4)
        with edge.cluster() as cluster, proxy.fault(late):
            view = edge.view(cluster, topic)
            with pytest.raises(BrokerError, match="look up what is allowed with group"):
                cluster.group_operations()
            cluster.commit(dict.fromkeys(view.bounds, 1))
            assert eventually(lambda: late.seen == late.times, 60)
            time.sleep(late.seconds)

        assert edge.positions(topic, "group-offsets", reset="earliest")[0] in (0, 1)


@pytest.mark.long("some ninety faults, each waits for the request timeout")
@pytest.mark.alone("asserts that all goes on in time")
def test_the_table_of_faults(broker: Broker) -> None:
    """What docs/reliability.md shows of each request and fault is what happens, within the request timeout and five seconds."""
    rows = [*table(broker)]

    late = [row for row in rows for cell in row.outcomes if cell.seconds > MOST_S]
    made = fault_table_text(row.text() for row in rows)
    assert not late, made
    assert _without_times(shown_table(PAGE.read_text())) == _without_times(made), made


def _without_times(rows: str) -> str:
    return re.sub(r", [0-9.]+ s", "", rows)

"""What happens to reading and writing when an answer of a broker is lost, late, cut, or an error: one cell of a table after another."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import UpsertKafkaError
from pyspark_upsert_kafka.core.options.frozen_options import Position
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.receipts import GroupOffset
from pyspark_upsert_kafka.kafka.clients import load_sending_client
from pyspark_upsert_kafka.kafka.librdkafka import cluster, reader, sender
from tests.conftest import Broker
from tests.kafka.conftest import Edge, messages, numbered
from tests.kafka.fault_proxy import Api, Fault, FaultProxy, Kind

REQUEST_S = 2.0
"""The request timeout; a table for users has that of the connector in its place."""

MOST_S = REQUEST_S + 5
"""After so long at most everything goes on."""

TIMES: dict[str, object] = {
    "request.timeout.ms": int(REQUEST_S * 1000),
    "default.api.timeout.ms": 20_000,
    "delivery.timeout.ms": 20_000,
}

PATIENT: dict[str, object] = {
    "request.timeout.ms": 5_000,
    "default.api.timeout.ms": 120_000,
    "delivery.timeout.ms": 120_000,
}
"""For tests that ask only whether all goes on: a broker that a busy machine gives no processor is no fault."""

UNKNOWN_SERVER_ERROR = -1

LATE_S = 2 * REQUEST_S
"""For so long an answer, or the whole broker, is late."""


@dataclass(frozen=True)
class Work:
    """Something that is done over a broker.

    Args:
        name: What the table calls it.
        do: Does it; raises UpsertKafkaError.
        passing: An error for each request that it sends, which passes by itself.
    """

    name: str
    do: Callable[[Edge, str], None]
    passing: dict[Api, int]


def plan(edge: Edge, topic: str) -> None:
    """Looks up the topic and its bounds."""
    with edge.cluster() as cluster:
        (bounds,) = edge.view(cluster, topic).bounds.values()
    assert (bounds.earliest, bounds.latest) == (0, 3)


def start_at_group(edge: Edge, topic: str) -> None:
    """Looks up what a group has committed: nothing."""
    edge = edge.given({"group.id": f"g-{uuid.uuid4()}"})
    with edge.cluster() as cluster:
        view = edge.view(cluster, topic)
        found = cluster.positions(Position("group-offsets", reset="earliest"), view)
    assert [*found.values()] == [0]


def read(edge: Edge, topic: str) -> None:
    """Reads all messages."""
    assert edge.offsets(Range(topic, 0, 0, 3)) == [0, 1, 2]


def write(edge: Edge, topic: str) -> None:
    """Writes three messages more, idempotently where the client can."""
    with edge.sender(topic) as sender:
        sender.send(messages(topic, *numbered(3, 3)))
        sender.flush()


def write_exactly_once(edge: Edge, topic: str) -> None:
    """The same in a transaction, with a receipt."""
    id_ = f"sink-{uuid.uuid4()}"
    client = load_sending_client(edge.client, "The test")
    opened = client.transactional_sender(edge.all_properties(), (topic,), id_, with_metadata=False)
    with closing(opened) as sender:
        assert sender.committed(topic) is None
        sender.begin()
        sender.send(messages(topic, *numbered(3, 3)))
        sender.flush()
        sender.commit(GroupOffset(topic, 0, 1, "{}"))


_NOT_LEADER, _LOADING, _NOT_COORDINATOR, _CONCURRENT = 6, 14, 16, 51

WORKS = (
    Work("planning", plan, {Api.METADATA: 5, Api.LIST_OFFSETS: _NOT_LEADER}),
    Work("starting at a group's offsets", start_at_group, {Api.FIND_COORDINATOR: 15, Api.OFFSET_FETCH: _LOADING}),
    Work("reading", read, {Api.FETCH: _NOT_LEADER, Api.FIND_COORDINATOR: 15}),
    Work("writing", write, {Api.DESCRIBE_CONFIGS: 7, Api.INIT_PRODUCER_ID: _LOADING, Api.PRODUCE: _NOT_LEADER}),
    Work(
        "writing exactly once", write_exactly_once,
        {
            Api.FIND_COORDINATOR: 15, Api.INIT_PRODUCER_ID: _CONCURRENT, Api.ADD_PARTITIONS_TO_TXN: _CONCURRENT,
            Api.PRODUCE: _NOT_LEADER, Api.ADD_OFFSETS_TO_TXN: _NOT_COORDINATOR, Api.TXN_OFFSET_COMMIT: _LOADING,
            Api.END_TXN: _NOT_COORDINATOR,
        },
    ),
)  # fmt: skip


def faults(work: Work, api: Api) -> dict[str, Fault]:
    """Each fault of an answer, once, by the name of its column."""
    return {
        "lost": Fault(api, Kind.LOST),
        "connection cut": Fault(api, Kind.CUT),
        "truncated": Fault(api, Kind.TRUNCATED),
        f"{LATE_S:g} s late": Fault(api, Kind.LATE, seconds=LATE_S),
        f"broker hangs for {LATE_S:g} s": Fault(api, Kind.HUNG, seconds=LATE_S),
        "an error that passes": Fault(api, Kind.ERROR, code=work.passing[api]),
        "`UNKNOWN_SERVER_ERROR`": Fault(api, Kind.ERROR, code=UNKNOWN_SERVER_ERROR),
    }


PLACES = tuple((work, api) for work in WORKS for api in work.passing)
"""What each row is about."""


@dataclass(frozen=True)
class Outcome:
    """What came of a fault.

    Args:
        error: The error that was raised; None = everything went on.
        seconds: How long the work took with the fault.
        seen: How many answers had the fault.
    """

    error: UpsertKafkaError | None
    seconds: float
    seen: int


@contextmanager
def proxied(
    broker: Broker, client: str, timeouts: dict[str, object] = TIMES
) -> Iterator[tuple[FaultProxy, Edge, str]]:
    """A proxy, a client behind it with short timeouts, and a topic of three messages."""
    topic = broker.topic()
    broker.produce(topic, *numbered(3))
    with closing(FaultProxy(broker.servers)) as proxy:
        proxy.topic = topic
        yield proxy, Edge(client, proxy.servers).given(timeouts), topic
        for pool in (reader.POOL, reader.BATCH_POOL, sender.POOL, cluster.POOL):
            pool.close_idle()


def outcome(
    broker: Broker, work: Work, fault: Fault, timeouts: dict[str, object] = TIMES
) -> Outcome:
    """What comes of a fault; every message that is committed then is there once, and in order.

    What was written counts also where an error is raised, since its answer may be what was lost.
    """
    with proxied(broker, "librdkafka", timeouts) as (proxy, edge, topic):
        began, error = time.monotonic(), None
        with proxy.fault(fault):
            try:
                work.do(edge, topic)
            except UpsertKafkaError as raised:
                error = raised
            took = time.monotonic() - began
        found = broker.pairs(topic)
    writes = work.do in (write, write_exactly_once)
    assert found in ([numbered(6)] if writes and error is None else [numbered(3), numbered(6)])
    return Outcome(error, took, fault.seen)


@dataclass(frozen=True)
class Row:
    """What came of each fault of the answers to a request.

    Args:
        work: What was done.
        api: The request.
        outcomes: What came of each of `faults`.
    """

    work: Work
    api: Api
    outcomes: tuple[Outcome, ...]

    def text(self) -> str:
        """As a line of a table."""
        return _line(*place(self.work, self.api), *map(_shown, self.outcomes))


def table(broker: Broker) -> Iterator[Row]:
    """Every request and every fault."""
    for work, api in PLACES:
        outcomes = tuple(outcome(broker, work, fault) for fault in faults(work, api).values())
        yield Row(work, api, outcomes)


def head() -> str:
    """The two lines above the rows."""
    columns = ["while", "answer to", *faults(*PLACES[0])]
    return f"{_line(*columns)}\n|{'---|' * len(columns)}"


def place(work: Work, api: Api) -> tuple[str, str]:
    """The first two cells of a row."""
    return work.name, _words(api)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _words(api: Api) -> str:
    """The name that Kafka has for a request."""
    return "".join(part.capitalize() for part in api.name.split("_"))


def _shown(found: Outcome) -> str:
    if found.error is not None:
        return f"`{type(found.error).__name__}`"
    return f"goes on, {found.seconds:.1f} s"

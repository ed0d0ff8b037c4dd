"""Brokers that have not answered in time are asked last, by every client of the process."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka import errors as kafka_errors
from kafka.future import Future

from pyspark_upsert_kafka.kafka.kafka_python.cluster import SILENT, SilentBrokers
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3
from pyspark_upsert_kafka.kafka.kafka_python.properties import connections_of_library
from tests.unit.connector.fake_cluster import Clock

ONE, TWO = ("one", 9092), ("two", 9092)


@pytest.mark.parametrize(
    ("silent", "answered", "later_s", "preferred"),
    [
        ([], [], 0, [ONE, TWO]),
        ([ONE], [], 0, [TWO]),
        ([ONE], [], 29, [TWO]),
        ([ONE], [], 31, [ONE, TWO]),
        ([ONE], [ONE], 0, [ONE, TWO]),
        ([ONE, TWO], [], 0, [ONE, TWO]),
        ([ONE, TWO], [TWO], 0, [TWO]),
    ],
)
def test_who_has_not_answered_is_avoided_for_a_while(silent, answered, later_s, preferred):
    """Until it answers, or for half a minute; where nobody has answered, all are equal."""
    clock = Clock()
    brokers = SilentBrokers(clock)
    for address in silent:
        brokers.note(address)
    for address in answered:
        brokers.forget(address)
    clock.sleep(later_s)

    assert brokers.preferred([ONE, TWO]) == preferred


@contextmanager
def opened(*hosts: str) -> Iterator[Any]:
    """The connections of a client with these bootstrap servers, of which none is open yet."""
    servers = ",".join(f"{host}:9092" for host in hosts)
    connections = connections_of_library()(
        bootstrap_servers=servers, api_version=(2, 6), request_timeout_ms=1_000
    )
    try:
        yield connections
    finally:
        connections.close()


def chosen(connections: Any) -> set[str]:
    """The hosts that are chosen for what any broker can answer, when that is asked often."""
    fallback = {"bootstrap_fallback": True} if IS_KAFKA_PYTHON_3 else {}
    nodes = [connections.least_loaded_node(**fallback) for _ in range(50)]
    return {connections.cluster.broker_metadata(node).host for node in nodes}


def test_another_bootstrap_server_is_asked_first():
    """One that did not answer one client is no longer chosen by chance by the next."""
    one, two = f"one-{uuid.uuid4()}", f"two-{uuid.uuid4()}"
    with opened(one, two) as connections:
        assert chosen(connections) == {one, two}
    SILENT.note((one, 9092))
    with opened(one, two) as connections:
        assert chosen(connections) == {two}
    SILENT.note((two, 9092))
    with opened(one, two) as connections:
        assert chosen(connections) == {one, two}


@pytest.mark.parametrize(
    ("error", "is_noted"),
    [(kafka_errors.RequestTimedOutError(), True), (kafka_errors.KafkaConnectionError(), False)],
)
def test_an_answer_that_does_not_come_in_time_is_noted(monkeypatch, error, is_noted):
    """A connection that ends is another matter: the library waits before it opens one again. An answer makes up for it."""
    one, two = f"one-{uuid.uuid4()}", f"two-{uuid.uuid4()}"
    pending: list[Future] = []

    def send(*_: object) -> Future:
        pending.append(Future())
        return pending[-1]

    with opened(one, two) as connections:
        sending = connections._manager if IS_KAFKA_PYTHON_3 else connections
        monkeypatch.setattr(type(sending).__mro__[1], "send", send)
        brokers = connections.cluster._bootstrap_brokers
        node = next(node for node, broker in brokers.items() if broker.host == one)
        ask = (None, node) if IS_KAFKA_PYTHON_3 else (node, None)
        sending.send(*ask)
        pending.pop().failure(error)
        noted = SILENT.preferred([(one, 9092), (two, 9092)]) == [(two, 9092)]
        sending.send(*ask)
        pending.pop().success(None)

    assert noted is is_noted
    assert len(SILENT.preferred([(one, 9092), (two, 9092)])) == 2

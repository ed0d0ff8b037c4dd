"""The retry loop: what is retried, for how long, and what helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from pyspark_upsert_kafka.core.clock import Backoff
from pyspark_upsert_kafka.core.errors import BrokerError, RetriableBrokerError, UnknownTopicError
from pyspark_upsert_kafka.kafka.failures import ClientErrors, Failure, FailureKind
from pyspark_upsert_kafka.kafka.retrying import Outage, Retrying, Timeouts

JAVA = Timeouts(30.0, 60.0)


class ClientError(Exception):
    """What the client of these tests raises: it holds the kind."""


class Client:
    """A client whose attempts end as planned; the last plan goes on for ever. Time passes only here.

    Args:
        plan: How the attempts end, a kind of failure or None for an answer.
        attempt_s: How long each takes.
        timeouts: Of the client.
    """

    def __init__(
        self, *plan: FailureKind | None, attempt_s: float = 0.0, timeouts: Timeouts = JAVA
    ) -> None:
        self.now, self.plan, self.attempt_s = 0.0, plan, attempt_s
        self.timeouts: list[float] = []
        self.done: list[str] = []
        self.errors = ClientErrors(clock=lambda: self.now)
        self.retrying = Retrying(
            "here:9092", timeouts, self.errors, (ClientError,),
            lambda error: Failure(error.args[0], "no"), self._refresh, self._reopen,
            backoff=Backoff(0.1, 1.0, random=lambda: 0.5), clock=self,
        )  # fmt: skip

    def call(self) -> str:
        """The answer to a request."""
        return self.retrying.call("look", self._attempt)

    def monotonic(self) -> float:
        """The time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Passes the time."""
        self.now += seconds

    def _attempt(self, timeout: float) -> str:
        self.timeouts.append(timeout)
        self.done.append("request")
        self.sleep(min(self.attempt_s, timeout))
        outcome = self.plan[min(len(self.timeouts), len(self.plan)) - 1]
        if outcome is not None:
            raise ClientError(outcome)
        return "answer"

    def _refresh(self, _: float) -> None:
        self.done.append("refresh")

    def _reopen(self) -> None:
        self.done.append("reopen")


def counted(done: Sequence[str]) -> dict[str, int]:
    """How often each was done."""
    return {what: done.count(what) for what in ("request", "refresh", "reopen")}


def test_leaders_are_looked_up_anew_before_each_further_attempt():
    """What a client remembers of leaders would else be wrong for minutes."""
    client = Client(FailureKind.RETRIABLE, FailureKind.RETRIABLE, None)

    assert client.call() == "answer"
    assert client.done == ["request", "refresh", "request", "refresh", "request"]


def test_a_client_that_cannot_be_helped_is_replaced():
    """Now and then, as the last resort; the error comes when the time is over."""
    client = Client(FailureKind.RETRIABLE)

    with pytest.raises(
        RetriableBrokerError, match=r"'here:9092' answered within 60 seconds \(no\)"
    ):
        client.call()

    assert 60 <= client.now < 62
    assert counted(client.done)["reopen"] == 3


def test_a_slow_answer_is_waited_for():
    """One attempt lasts as long as its timeout says, and all of them no longer than theirs."""
    slow = Client(None, attempt_s=29.0)
    assert slow.call() == "answer"
    assert slow.timeouts == [30.0]

    in_vain = Client(FailureKind.RETRIABLE, attempt_s=99.0, timeouts=Timeouts(4.0, 10.0))
    with pytest.raises(BrokerError, match="within 10 seconds"):
        in_vain.call()
    assert in_vain.timeouts[:2] == [4.0, 4.0]
    assert in_vain.now < 11


@pytest.mark.parametrize(
    ("kind", "error"),
    [(FailureKind.FATAL, BrokerError), (FailureKind.UNKNOWN_TOPIC, UnknownTopicError)],
)
def test_a_fatal_error_is_raised_at_once(kind, error):
    """There is one attempt only."""
    client = Client(kind)

    with pytest.raises(error, match=r"Could not look at 'here:9092': no\."):
        client.call()

    assert client.done == ["request"]


def test_a_refused_login_is_an_error_soon():
    """The request is retried by new clients for a few seconds: a verdict may be that of one broker."""
    client = Client(FailureKind.SECURITY)
    with pytest.raises(BrokerError, match=r"properties\.sasl\."):
        client.call()
    assert 5 <= client.now < 7

    passing = Client(FailureKind.SECURITY, FailureKind.SECURITY, None)
    assert passing.call() == "answer"
    assert counted(passing.done) == {"request": 3, "refresh": 2, "reopen": 2}


def waiting_out(client: Client, limit_s: float, parent: Callable[[], int] = lambda: 7) -> Client:
    """The client, which waits for so long for brokers that are all away."""
    outage = Outage(limit_s, clock=lambda: client.now, parent=parent)
    client.retrying = replace(client.retrying, outage=outage)
    return client


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings, without what differs."""
    return [re.sub(r"[0-9.]+ seconds", "N seconds", text) for text in caplog.messages]


def test_an_outage_does_not_count_as_an_attempt(caplog):
    """Brokers are waited for longer than for an answer, with a warning every 30 seconds."""
    client = waiting_out(Client(*[FailureKind.AWAY] * 100, None), 600.0)

    assert client.call() == "answer"

    assert 95 < client.now < 110
    *warnings, end = warned(caplog)
    assert len(warnings) == 3
    assert all("'here:9092' has answered for N seconds (no)" in each for each in warnings)
    assert end == "A Kafka broker answers again, after N seconds."


def test_an_outage_that_is_too_long_is_an_error():
    """It says what was waited for, also when it began while an earlier request was made."""
    client = waiting_out(Client(FailureKind.AWAY), 200.0)

    with pytest.raises(BrokerError, match=r"answered for 200 seconds, the time of 'scan\.outage"):
        client.call()

    assert 199 < client.now < 203


def test_nobody_waits_in_a_process_that_spark_has_left():
    """Its driver has been killed: a process that waits would stay for as long as the brokers are away."""
    client = Client(FailureKind.AWAY)
    waiting_out(client, 600.0, parent=lambda: 7 if client.now < 90 else 1)

    with pytest.raises(BrokerError):
        client.call()

    assert 89 < client.now < 100


def test_a_broker_that_answers_with_errors_is_not_away():
    """However long the outage before: from then on it has the time for all attempts."""
    client = waiting_out(Client(*[FailureKind.AWAY] * 50, FailureKind.RETRIABLE), 600.0)

    with pytest.raises(RetriableBrokerError, match="answered within 60 seconds"):
        client.call()

    assert 105 < client.now < 115


def test_one_broker_that_is_away_is_no_outage():
    """Another one tells the client of the leaders meanwhile."""
    client = waiting_out(Client(FailureKind.AWAY), 600.0)
    client.retrying = replace(client.retrying, refresh=lambda _: True)

    with pytest.raises(RetriableBrokerError, match="answered within 60 seconds"):
        client.call()

    assert 60 <= client.now < 62


@pytest.mark.parametrize("kind", [FailureKind.FATAL, FailureKind.UNKNOWN_TOPIC])
def test_what_is_fatal_ends_an_outage_at_once(kind):
    """Waiting cannot change it."""
    client = waiting_out(Client(FailureKind.AWAY, FailureKind.AWAY, kind), 600.0)

    with pytest.raises(BrokerError, match="Could not look"):
        client.call()

    assert client.now < 2


@pytest.mark.parametrize(("number", "waited_s"), [(0.0, 0.56), (0.5, 0.7), (1.0, 0.84)])
def test_pauses_differ_from_task_to_task(number, waited_s):
    """By up to 20 %, as the random number says: tasks that lost their broker together do not ask in step."""
    client = Client(*[FailureKind.RETRIABLE] * 3, None)
    client.retrying = replace(client.retrying, backoff=Backoff(0.1, 1.0, random=lambda: number))

    assert client.call() == "answer"
    assert client.now == pytest.approx(waited_s)

"""Idle clients are few, not old, and only for those who ask with the same settings."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.client_pool import Pool


class Clients:
    """Opens numbered clients, keeps a clock, and notes what is closed."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.opened = 0
        self.closed: list[int] = []
        self.pool: Pool[int] = Pool(
            self.closed.append, size=3, max_age_s=60.0, clock=lambda: self.now
        )

    def open(self) -> int:
        """A new client."""
        self.opened += 1
        return self.opened

    def use(self, settings: object) -> int:
        """Takes a client and gives it back."""
        with self.pool.client(settings, self.open) as client:
            return client


@pytest.fixture
def clients() -> Clients:
    """A pool of at most three idle clients, each for a minute."""
    return Clients()


def test_a_client_is_used_again_with_the_same_settings_only(clients):
    """Settings are compared by what they hold, not by what they are."""
    assert [clients.use(each) for each in ("a", "b", "a", "b", "c")] == [1, 2, 1, 2, 3]
    assert clients.use(Properties({"linger.ms": "5"})) == 4
    assert clients.use(Properties({"linger.ms": "5"})) == 4


def test_nobody_shares_a_client(clients):
    """Two who ask at the same time get two, and both are kept for later."""
    one, other = clients.pool.take("a", clients.open), clients.pool.take("a", clients.open)
    assert (one.client, other.client) == (1, 2)
    clients.pool.give_back(one)
    clients.pool.give_back(other)

    assert clients.pool.take("a", clients.open).client == 2, "the one used last is the warmest"
    assert clients.pool.take("a", clients.open).client == 1
    assert clients.closed == []


def test_the_number_of_idle_clients_is_bounded_over_all_settings(clients):
    """The one that was used least recently goes first."""
    for settings in ("a", "b", "c", "a", "d"):
        clients.use(settings)
    assert clients.closed == [2], "b"

    for number in range(30):
        clients.use(number)
    assert len(clients.closed) == clients.opened - 3


def test_an_old_client_is_closed_rather_than_used(clients):
    """Age counts from opening, so that in a busy process too settings of a topic are learned anew."""
    for second in range(0, 60, 10):
        clients.now = 1000.0 + second
        assert clients.use("busy") == 1

    clients.now = 1060.0

    assert clients.use("busy") == 2
    assert clients.closed == [1]


def test_an_idle_client_is_closed_when_another_is_used(clients):
    """Whoever comes next sees to it, whatever their settings."""
    clients.use("a")
    clients.now += 61

    clients.use("b")

    assert clients.closed == [1]


def test_a_client_left_with_an_exception_is_closed(clients):
    """Nobody knows what state it is in; that of a generator that is not read to its end too."""

    def reading():
        with clients.pool.client("a", clients.open) as client:
            yield client
            yield client

    abandoned = reading()
    next(abandoned)
    abandoned.close()
    with pytest.raises(ValueError, match="no"), clients.pool.client("a", clients.open):
        raise ValueError("no")

    assert clients.closed == [1, 2]


def test_every_idle_client_can_be_closed(clients):
    """One that is in use is not idle."""
    lease = clients.pool.take("a", clients.open)
    clients.use("b")

    clients.pool.close_idle()

    assert clients.closed == [2]
    clients.pool.give_back(lease)
    assert clients.use("a") == 1


def test_settings_are_not_shown(clients):
    """They hold resolved secrets."""
    lease = clients.pool.take(("sasl.password", "geheim"), clients.open)
    clients.pool.give_back(lease)

    assert "geheim" not in repr(lease) + repr(clients.pool) + repr(vars(clients.pool))

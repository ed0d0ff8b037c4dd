"""Ids that a registry does not know: how often it is asked, whatever messages begin with."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.formats.registry_format import UnknownSchemaError
from pyspark_upsert_kafka.registry.unknown_ids import UnknownIds


class Registry:
    """A registry that knows even numbers, and the time.

    Args:
        lags_s: So long it knows none, from its first question on.
        new: Whether an id may be new.
    """

    def __init__(self, lags_s: float = 0.0, *, new: bool = False) -> None:
        self.now, self.asked, self.waited = 500.0, list[int](), 0.0
        self.knows_from, self.new = self.now + lags_s, new
        self.unknown = UnknownIds(self)

    def monotonic(self) -> float:
        """The time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """It passes."""
        self.now += seconds
        self.waited += seconds

    def ask(self, number: float, registry: str = "here") -> str:
        """Asks for an id; what is said of it."""
        name = f"Schema id {number}"
        try:
            return self.unknown.asked(
                registry, number, name, lambda turn: self._look_up(number, turn), lambda: self.new
            )
        except UnknownSchemaError as error:
            return str(error)

    def _look_up(self, number: float, turn: int) -> str:
        self.asked.append(int(number))
        if number % 2 or self.now < self.knows_from:
            raise UnknownSchemaError(f"Schema id {number} is not there")
        return f"there, turn {turn}" if turn else "there"


def test_a_flood_of_ids_that_nobody_knows(caplog: pytest.LogCaptureFixture) -> None:
    """A registry is asked for a thousand of them, and then for 25 a second; each is asked for, and that somebody waits is told."""
    registry = Registry()
    numbers = range(1, 7_000, 2)
    said = [registry.ask(number) for number in numbers]

    assert said == [f"Schema id {number} is not there" for number in numbers]
    assert registry.asked == [*numbers]
    assert registry.waited == pytest.approx(2_500 / 25)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 4  # in 100 s
    assert (
        "asked for only 25 a second more, and this task waits; Schema id 2001 is next"
        in warnings[0]
    )


def test_a_good_id_in_a_flood_waits_for_its_turn() -> None:
    """It is not taken for one of the others; that it is known costs nothing of the pace."""
    registry = Registry()
    for number in range(1, 2_001, 2):
        registry.ask(number)
    assert [registry.ask(80_000 + 2 * number) for number in range(50)] == ["there"] * 50
    assert registry.waited == pytest.approx(1 / 25)


def test_a_registry_recovers() -> None:
    """When nothing unknown is met for some time, there is no pause for the next thousand."""
    registry = Registry()
    for number in range(1, 2_001, 2):
        registry.ask(number)
    registry.now += 40.0
    for number in range(10_001, 12_001, 2):
        registry.ask(number)
    assert registry.waited == 0.0
    registry.ask(20_001)
    assert registry.waited > 0.0


def test_ids_that_are_known_cost_nothing_of_it() -> None:
    """However many they are."""
    registry = Registry()
    for number in range(3_000):
        registry.ask(2 * number)
    for number in range(1, 2_001, 2):
        assert registry.ask(number) == f"Schema id {number} is not there"
    assert registry.waited == 0.0


def test_each_registry_has_a_pace_of_its_own() -> None:
    """What is wrong in one topic does not touch a table with another registry."""
    registry = Registry()
    for number in range(1, 2_001, 2):
        registry.ask(number)
    assert registry.ask(2, "elsewhere") == "there"
    assert registry.ask(1, "elsewhere") == "Schema id 1 is not there"
    assert registry.waited == 0.0


def test_what_was_not_known_is_remembered_for_half_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By no more ids than are kept; the oldest are forgotten first."""
    registry = Registry()
    for _ in range(3):
        assert registry.ask(1) == "Schema id 1 is not there"
    registry.now += 29.9
    registry.ask(1)
    assert registry.asked == [1]
    registry.now += 0.2
    registry.ask(1)
    assert registry.asked == [1, 1]
    monkeypatch.setattr("pyspark_upsert_kafka.registry.unknown_ids._MOST_KEPT", 5)
    for number in range(3, 15, 2):
        registry.ask(number)
    del registry.asked[:]
    registry.ask(13)
    registry.ask(1)
    assert registry.asked == [1]


def test_an_id_that_a_node_does_not_know_yet() -> None:
    """It is asked for once more after two seconds: another node may have given it a moment ago, and its message is a good one."""
    registry = Registry(lags_s=1.9, new=True)

    assert [registry.ask(2), registry.ask(4)] == ["there, turn 1", "there"]
    assert (registry.asked, registry.waited) == ([2, 2, 4], 2.0)


def test_an_id_that_is_unknown_twice() -> None:
    """Then it counts as unknown; later it is asked for without that pause, as it is not new any more."""
    registry = Registry(new=True)
    for _ in range(2):
        assert registry.ask(1) == "Schema id 1 is not there"
    assert (registry.asked, registry.waited) == ([1, 1], 2.0)

    registry.now += 31.0
    assert registry.ask(1) == "Schema id 1 is not there"
    assert (registry.asked, registry.waited) == ([1, 1, 1], 2.0)


def test_an_id_that_cannot_be_new() -> None:
    """It is asked for once, and leaves the others what they are allowed."""
    registry = Registry()
    for number in range(101, 201, 2):
        registry.ask(number)
    assert (len(registry.asked), registry.waited) == (50, 0.0)

    registry.new, registry.knows_from = True, registry.now + 1.0
    assert registry.ask(2) == "there, turn 1"


def test_how_many_ids_are_asked_for_once_more() -> None:
    """Ten of a type at once, and then one more a minute; a topic of many others is not read at that pace."""
    registry = Registry(new=True)
    for number in range(1, 101, 2):
        registry.ask(number)
    assert (len(registry.asked), registry.waited) == (60, 20.0)
    registry.ask(101.0)
    assert registry.waited == 22.0

    registry.now += 60.0
    for number in range(201, 301, 2):
        registry.ask(number)
    assert registry.waited == 24.0

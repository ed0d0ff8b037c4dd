"""Ids that a registry does not know: how often it is asked, whatever messages begin with."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.formats.registry_format import UnknownSchemaError
from pyspark_upsert_kafka.registry.unknown_ids import UnknownIds


class Registry:
    """A registry that knows even numbers, and the time."""

    def __init__(self) -> None:
        self.now, self.asked = 500.0, list[int]()
        self.unknown = UnknownIds(clock=lambda: self.now)

    def ask(self, number: int, registry: str = "here") -> str:
        """Asks for an id; what is said of it."""
        try:
            with self.unknown.asking(registry, number, f"Schema id {number}"):
                self._look_up(number)
        except UnknownSchemaError as error:
            return str(error)
        return "there"

    def _look_up(self, number: int) -> None:
        self.asked.append(number)
        if number % 2:
            raise UnknownSchemaError(f"Schema id {number} is not there")


def test_a_flood_of_ids_that_nobody_knows() -> None:
    """A registry is asked for a thousand of them, and then for ten a second: the others are told to be taken for more of them."""
    registry = Registry()
    said = [registry.ask(number) for number in range(1, 100_000, 2)]

    assert len(registry.asked) == 1_000
    assert said[999] == "Schema id 1999 is not there"
    assert said[1_000] == (
        "Schema id 2001 was not looked up: the registry did not know the last 1,000 that were, so that it is asked for only 10 "
        "a second now"
    )
    for seconds in (1.0, 0.05, 0.05, 3_600.0):
        registry.now += seconds
        for number in range(100_001, 200_000, 2):
            registry.ask(number)
    assert len(registry.asked) == 1_000 + 10 + 0 + 1 + 1_000


def test_ids_that_are_known_cost_nothing_of_it() -> None:
    """However many they are; one that is not looked up now is later."""
    registry = Registry()
    for number in range(3_000):
        registry.ask(2 * number)
    assert registry.ask(1) == "Schema id 1 is not there"
    for number in range(3, 3_001, 2):
        registry.ask(number)
    assert "was not looked up" in registry.ask(80_000)
    registry.now += 0.2
    assert [registry.ask(80_000 + 2 * number) for number in range(50)] == ["there"] * 50


def test_each_registry_has_a_pace_of_its_own() -> None:
    """What is wrong in one topic does not touch a table with another registry."""
    registry = Registry()
    for number in range(1, 5_000, 2):
        registry.ask(number)
    assert registry.ask(2, "elsewhere") == "there"
    assert registry.ask(1, "elsewhere") == "Schema id 1 is not there"


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

"""What of an error is shown, and what brokers have said to the end."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError, UnknownTopicError, shown_names


@pytest.mark.parametrize("kind", [BrokerError, UnknownTopicError])
def test_an_error_of_brokers_may_pass_unless_it_is_said_to_be_final(kind):
    """A retry may help; what brokers have answered comes again."""
    assert not kind("no answer").is_final
    assert kind("no ACL", is_final=True).is_final


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"] * 10, ", ".join(["'a'"] * 10)),
        (["a"] * 11, ", ".join(["'a'"] * 10) + " and 1 more"),
        (["a"] * 30, ", ".join(["'a'"] * 10) + " and 20 more"),
        (["a" * 40], f"'{'a' * 40}'"),
        (["a" * 41, "b"], f"'{'a' * 40}…', 'b'"),
    ],
)
def test_names_in_an_error_are_few_and_short(names, text):
    """Ten of them, of forty characters each; how many there are besides is told."""
    assert shown_names(names) == text

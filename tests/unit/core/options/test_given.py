"""Options as they are given: as texts, before anything is known of them."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.given import given_options, option_texts


@pytest.mark.parametrize(
    ("value", "text"),
    [("", ""), (" a ", " a "), (2, "2"), (0, "0"), (0.5, "0.5"), (True, "true"), (False, "false")],
)
def test_a_value_as_spark_writes_it(value: Any, text: str) -> None:
    """Python's True is Spark's true; a text stays as it is."""
    assert option_texts({"topic": value}) == {"topic": text}


def test_none_is_no_value() -> None:
    """Spark would leave the option out, and Python would make the text None of it."""
    with pytest.raises(OptionError, match=r"^Option 'topic' is None; leave it out"):
        option_texts({"sink.parallelism": 2, "topic": None})


def test_options_that_were_taken_from_a_statement_keep_their_places() -> None:
    """And the names as they were written: they are read a second time where a query is planned."""
    first = given_options(
        {"ddl": "CREATE TABLE t (a INT) WITH (\n'connector' = 'upsert-kafka', 'Topic' = 'x')"}
    )
    again = given_options(first)

    assert (again, again.places, again.spelt) == (first, first.places, first.spelt)
    assert "topic" in first.places

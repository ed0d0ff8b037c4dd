"""Options as they are given: as texts, before anything is known of them."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.given import option_texts


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

"""How long a broker may take: by the Java client's names, defaults and rules."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.kafka.retrying import Timeouts, message_timeout_s


@pytest.mark.parametrize(
    ("request_ms", "api_ms", "expected"),
    [
        (None, None, Timeouts(30.0, 60.0)),
        ("2000", None, Timeouts(2.0, 60.0)),
        (None, "90000", Timeouts(30.0, 90.0)),
        ("1000", "1000", Timeouts(1.0, 1.0)),
        ("120000", None, Timeouts(120.0, 120.0)),  # as in Java, what is only a default gives way
    ],
)
def test_timeouts_are_those_of_java(request_ms, api_ms, expected):
    """One attempt and all of them; a longer request timeout alone extends all of them."""
    given = {"request.timeout.ms": request_ms, "default.api.timeout.ms": api_ms}

    assert (
        Timeouts.from_properties({name: value for name, value in given.items() if value})
        == expected
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"request.timeout.ms": "2000", "default.api.timeout.ms": "1999"}, "must not be less than"),
        ({"default.api.timeout.ms": "29999"}, r"request\.timeout\.ms' = '30000'"),
        ({"request.timeout.ms": "0"}, r"properties\.request\.timeout\.ms.*'0'"),
        ({"request.timeout.ms": "-1"}, "positive"),
        ({"default.api.timeout.ms": "1 min"}, r"properties\.default\.api\.timeout\.ms.*'1 min'"),
    ],
)
def test_timeouts_that_make_no_sense_are_refused(given, said):
    """One attempt cannot be longer than all, and a time is a positive number."""
    with pytest.raises(OptionError, match=said):
        Timeouts.from_properties(given)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, 120.0),
        ({"request.timeout.ms": "2000"}, 120.0),
        ({"request.timeout.ms": "2000", "default.api.timeout.ms": "6000"}, 6.0),
    ],
)
def test_the_next_message_is_waited_for_as_an_answer_is_where_that_is_given(given, seconds):
    """Else for two minutes, as Spark's own source waits."""
    assert message_timeout_s(given) == seconds

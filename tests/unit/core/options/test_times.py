"""Times of a start and an end: written by people, or as how long ago they were."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import OPTIONS
from pyspark_upsert_kafka.core.options.frozen_options import Position, ReadOptions
from pyspark_upsert_kafka.core.options.parsers import Time, time_or_ago
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options as given_to_a_sink
from tests.table_options import table_options

NOW = 1_769_860_800_000
"""2026-01-31T12:00:00Z"""

POSITIONS = [("startup", "start"), ("bounded", "end")]


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that stands still."""
    monkeypatch.setattr("pyspark_upsert_kafka.core.options.table.now_ms", lambda: NOW)


def planned(*, stream: bool = True, **more: object) -> ReadOptions:
    """The options of a changelog."""
    raw = table_options(**{"read.mode": "changelog", **more})
    return read_options(raw, format_options, stream=stream)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-01-31T12:00:00Z", Time(NOW)),
        (" 2026-01-31 13:00+01:00 ", Time(NOW)),
        ("2026-01-31T12:00:00.0001Z", Time(NOW + 1)),
        ("-10 min", Time(600_000, is_ago=True)),
        ("- 10min", Time(600_000, is_ago=True)),
        ("-1 Day", Time(86_400_000, is_ago=True)),
        ("-250ms", Time(250, is_ago=True)),
        ("-0 s", Time(0, is_ago=True)),
    ],
)
def test_times(text, time):
    """ISO 8601 with a zone, rounded up to milliseconds, or a duration with a minus sign."""
    assert time_or_ago(text) == time


ADVICE = (
    ". A time is in ISO 8601 with a zone, as in '2026-01-31T12:00:00Z', or says how long ago it was, as in '-10 min'; "
    "milliseconds since the epoch go into 'scan.startup.timestamp-millis'."
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("yesterday", "expected a time such as 2026-01-31T12:00:00Z, but is 'yesterday'"),
        ("", "expected a time such as 2026-01-31T12:00:00Z, but is ''"),
        ("2026-01-31", "expected a time such as 2026-01-31T12:00:00Z, but is '2026-01-31'"),
        ("2026-02-30T12:00Z", "expected a time such as 2026-01-31T12:00:00Z, but is '2026-02-30T12:00Z'"),
        ("1769860800000", "expected a time such as 2026-01-31T12:00:00Z, but is '1769860800000'"),
        (
            "2026-01-31T12:00",
            "'2026-01-31T12:00' has no zone: write 2026-01-31T12:00Z for UTC, or an offset as in 2026-01-31T12:00+01:00",
        ),
        ("1969-12-31T23:59Z", "expected a time from 1970 on, but is '1969-12-31T23:59Z'"),
        ("10 min", "'10 min' is in the future: 10 min ago is '-10 min'"),
        ("+1h", "'+1h' is in the future: 1h ago is '-1h'"),
        ("-10", "'-10' has no unit, such as 'min'"),
        (
            "-2 weeks",
            "expected how long ago it was, such as '-10 min' or '-1 d' (units: ns, us, ms, s, min, h, d), but is '-2 weeks'",
        ),
        ("-1.5 h", "expected a time such as 2026-01-31T12:00:00Z, but is '-1.5 h'"),
    ],
)  # fmt: skip
def test_what_is_no_time(text, what):
    """One without a zone, in the future or unreadable is told with what to write instead."""
    name = "scan.startup.timestamp"
    with pytest.raises(OptionError) as error:
        OPTIONS[name].read({name: text})

    assert str(error.value) == f"Invalid value for option '{name}': {what}{ADVICE}"


@pytest.mark.parametrize(("which", "position"), POSITIONS)
@pytest.mark.parametrize("mode", [None, "timestamp"])
@pytest.mark.parametrize(
    ("text", "at_ms"),
    [("1970-01-01T00:00:01Z", 1000), ("-10 min", NOW - 600_000), ("-0 s", NOW), ("-36500 d", 0),
     ("-999999999999999999 d", 0), ("2026-01-31T12:00:00Z", NOW)],
)  # fmt: skip
def test_a_time_is_a_position(which, position, mode, text, at_ms):
    """By itself, or with its mode; how long ago it was is counted from the planning, and at most from 1970."""
    options = planned(**{f"scan.{which}.timestamp": text, f"scan.{which}.mode": mode})

    assert getattr(options, position) == Position("timestamp", timestamp_ms=at_ms)


def test_both_ends_are_counted_from_one_moment():
    """A batch of the last ten minutes but one has nine of them."""
    options = planned(
        stream=False, **{"scan.startup.timestamp": "-10 min", "scan.bounded.timestamp": "-1 min"}
    )

    assert (options.start.timestamp_ms, options.end.timestamp_ms) == (NOW - 600_000, NOW - 60_000)


@pytest.mark.parametrize("which", ["startup", "bounded"])
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"scan.{}.timestamp": "2026-01-31T13:00:01+01:00"},
            "'scan.{}.timestamp' = '2026-01-31T13:00:01+01:00' is in the future: it is 2026-01-31T12:00:00Z now. To read ",
        ),
        (
            {"scan.{}.timestamp": "-1 h", "scan.{}.timestamp-millis": "5"},
            "'scan.{}.timestamp' and 'scan.{}.timestamp-millis' both say a time: remove one of them.",
        ),
        (
            {"scan.{}.timestamp": "-1 h", "scan.{}.mode": "latest-offset"},
            "'scan.{}.timestamp' is for 'scan.{}.mode' = 'timestamp' only, but that is 'latest-offset'.",
        ),
    ],
)  # fmt: skip
def test_a_time_that_contradicts(which, more, message):
    """A time to come, two times, or another mode: told when planned, to a sink as well."""
    given_ = {name.format(which): value for name, value in more.items()}
    sentence = "^" + re.escape(message.replace("{}", which))

    with pytest.raises(OptionError, match=sentence):
        planned(**given_)
    with pytest.raises(OptionError, match=sentence):
        given_to_a_sink(table_options(**given_), format_options, update_mode=True)


def test_a_snapshot_begins_at_no_time():
    """As with every other start; but it may end at a time."""
    with pytest.raises(OptionError, match=r"is not allowed with 'read\.mode' = 'snapshot'"):
        planned(stream=False, **{"read.mode": "snapshot", "scan.startup.timestamp": "-1 h"})
    planned(stream=False, **{"read.mode": "snapshot", "scan.bounded.timestamp": "-1 h"})


@given(st.integers(0, 10**9), st.sampled_from([("ms", 1), ("s", 1000), ("h", 3_600_000)]))
def test_how_long_ago_is_counted_back(count, unit):
    """In any unit, and never to before 1970."""
    name, ms = unit
    time = time_or_ago(f"-{count} {name}")

    assert time.at(NOW) == max(0, NOW - count * ms)

"""When a table lacks rows, or will."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.connector.planning.query_start import kept_until_ms, past_table_warning
from pyspark_upsert_kafka.connector.writing.sink_warnings import not_compacted

NOW = 1_000_000


def compacted(lag_ms: int, policy: str = "compact") -> dict[str, str]:
    """Settings of a topic."""
    return {"cleanup.policy": policy, "min.compaction.lag.ms": str(lag_ms)}


@pytest.mark.parametrize(
    ("settings", "at_ms", "topics"),
    [
        ({"t": compacted(0)}, NOW - 1, ["t"]),
        ({"t": compacted(0)}, NOW, None),
        ({"t": compacted(0)}, NOW + 1, None),
        ({"t": compacted(5_000)}, NOW - 5_000, None),
        ({"t": compacted(5_000)}, NOW - 5_001, ["t"]),
        ({"t": compacted(0, "delete")}, NOW - 1, None),
        ({"t": compacted(0, "compact,delete")}, NOW - 1, ["t"]),
        ({"t": compacted(0), "u": compacted(99), "v": compacted(7)}, NOW - 50, ["t", "v"]),
        ({"t": {"cleanup.policy": "compact"}}, NOW, None),
        ({"t": {"cleanup.policy": "compact"}}, NOW - 1, ["t"]),
        ({"t": {"min.compaction.lag.ms": "0"}}, NOW - 1, ["t"]),
        ({}, NOW - 1, None),
    ],
)
def test_a_time_older_than_the_lag_of_a_compacted_topic_is_told(settings, at_ms, topics):
    """With the topics and their lags."""
    warning = past_table_warning(settings, at_ms, NOW, "option")

    if topics is None:
        assert warning is None
    else:
        assert warning is not None
        assert [topic for topic in settings if f"'{topic}' (" in warning] == topics


def test_an_end_that_is_no_time_may_be_any_time_ago():
    """Of a topic whose lag is shorter than the time since the epoch the table may lack rows."""
    assert past_table_warning({"t": compacted(NOW)}, None, NOW, "") is None
    told = past_table_warning({"t": compacted(NOW - 1)}, None, NOW, "")
    assert "as of an earlier time" in (told or "")
    assert (told or "").endswith("if that time is not longer ago.")


def test_settings_that_are_not_known_are_told():
    """The broker may not tell them to everybody."""
    assert "which cannot be read" in (past_table_warning(None, NOW - 1, NOW, "") or "")
    assert past_table_warning(None, NOW, NOW, "") is None


def test_the_warning_shows_the_time_as_people_read_it():
    """In UTC: nobody knows when 25,554,182,402 ms ago was."""
    settings = {"t": compacted(0)}
    warning = past_table_warning(settings, 1_769_860_800_001, 1_795_414_982_402, "'--at'")

    assert (warning or "").startswith("The table as of 2026-01-31T12:00:00Z ('--at') may lack rows")


@pytest.mark.parametrize(
    ("settings", "until_ms"),
    [
        (None, 0),
        ({"t": compacted(0)}, 0),
        ({"t": compacted(300_000)}, 0),
        ({"t": compacted(300_001)}, NOW + 1),
        ({"t": compacted(400_000, "delete,compact")}, NOW + 100_000),
        ({"t": compacted(400_000, "delete")}, None),
    ],
)
def test_how_long_a_topic_surely_keeps_what_a_snapshot_reads(settings, until_ms):
    """As its lag says, less five minutes by which clocks may differ; for ever where it is not compacted."""
    assert kept_until_ms(settings, "t", NOW) == until_ms


@pytest.mark.parametrize(
    ("policies", "topics"),
    [
        ({"t": "compact"}, []),
        ({"t": "compact,delete"}, []),
        ({"t": "delete", "u": "compact", "v": ""}, ["t", "v"]),
        ({"t": ""}, ["t"]),
    ],
)
def test_a_topic_that_is_not_compacted_is_told(policies, topics):
    """The warning ends with the command that puts it right."""
    settings = {topic: {"cleanup.policy": policy} for topic, policy in policies.items()}

    told = not_compacted(settings, "there:9092")

    assert [text.split("--entity-name ")[1] for text in told] == [
        f"{topic} --add-config cleanup.policy=compact" for topic in topics
    ]
    assert all("kafka-configs.sh --bootstrap-server there:9092 --alter " in text for text in told)


def test_a_thousand_topics_that_are_not_compacted_are_one_warning():
    """It says how many they are, and names the first ones."""
    settings = {f"t{number:03}": {"cleanup.policy": "delete"} for number in range(1000)}

    (told,) = not_compacted(settings, "there:9092")

    assert told.startswith("1,000 topics ('t000', 't001', 't002', ...) have cleanup.policy")
    assert len(told) < 500

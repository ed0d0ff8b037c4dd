"""The two forms in which Spark asks a stream reader."""

from __future__ import annotations

import inspect

import pytest

from pyspark_upsert_kafka.connector.planning.stream_reader import (
    ReaderWithLimits,
    ReaderWithoutLimits,
    stream_reader,
)
from pyspark_upsert_kafka.core.errors import OptionError
from tests.table_options import table_options
from tests.unit.connector.fake_cluster import SCHEMA, World, stream_options, table, world
from tests.unit.connector.fake_spark import KNOWS_LIMITS, Query, needs_limits


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> World:
    """A broker in memory with topic ``t``, and a clock that stands still."""
    found = world(monkeypatch)
    found.cluster.create("t")
    return found


def test_the_installed_pyspark_decides():
    """It looks at the number of arguments, so one class cannot serve both."""
    reader = stream_reader(SCHEMA, table_options())

    assert type(reader) is (ReaderWithLimits if KNOWS_LIMITS else ReaderWithoutLimits)
    assert len(inspect.signature(reader.latestOffset).parameters) == (2 if KNOWS_LIMITS else 0)


@needs_limits
def test_spark_knows_that_available_now_is_supported():
    """By isinstance."""
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

    reader = stream_reader(SCHEMA, table_options())

    assert isinstance(reader, SupportsTriggerAvailableNow)


@pytest.mark.parametrize(
    "option",
    [
        {"maxOffsetsPerTrigger": 5},
        {"maxBytesPerTrigger": 5},
        {"minOffsetsPerTrigger": 5},
        {"scan.watermark.alignment.max-drift": "1 min"},
    ],
)
def test_before_4_2_limits_are_refused(option):
    """With a sentence that says what they need."""
    options = stream_options(**option)

    with pytest.raises(OptionError, match=r"need PySpark 4\.2 or newer"):
        ReaderWithoutLimits(table(options), options)


@needs_limits
@pytest.mark.parametrize(
    ("option", "limit"),
    [
        ({}, "ReadAllAvailable()"),
        ({"maxOffsetsPerTrigger": 5}, "ReadMaxRows(max_rows=5)"),
        ({"minOffsetsPerTrigger": 5}, "ReadMinRows(min_rows=5)"),
        (
            {"scan.watermark.alignment.max-drift": "1 min"},
            "ReadMaxRows(max_rows=9223372036854775807)",
        ),
        ({"minOffsetsPerTrigger": 5, "maxOffsetsPerTrigger": 9}, "ReadMaxRows(max_rows=9)"),
        ({"maxBytesPerTrigger": "1 kb"}, "ReadMaxBytes(max_bytes=1024)"),
        ({"maxBytesPerTrigger": "1 kb", "maxOffsetsPerTrigger": 9}, "ReadMaxRows(max_rows=9)"),
        ({"maxBytesPerTrigger": "1 kb", "minOffsetsPerTrigger": 5}, "ReadMaxBytes(max_bytes=1024)"),
    ],
)
def test_the_default_limit_tells_trigger_once_apart(option, limit):
    """That one asks with ReadAllAvailable, whatever the default is."""
    options = stream_options(**option)

    assert limit == repr(ReaderWithLimits(table(options), options).getDefaultReadLimit())


@needs_limits
def test_the_latest_offset_is_reported_for_the_lag(there):
    """What the broker has, whatever limits say, and what becomes of bad messages."""
    query = Query(there, stream_options(maxOffsetsPerTrigger=1)).start()

    assert query.reader.reportLatestOffset() is None
    there.cluster.produce("t", 0, 5)
    query.trigger()
    assert query.reader.reportLatestOffset() == {
        "version": 1,
        "topics": {"t": {"id": "id-1", "positions": {"0": 5}}},
        "bad_messages": "fail",
        "stable": {},
    }


def test_before_4_2_a_restart_goes_on_from_the_checkpoint(there):
    """Spark says where that is by planning an empty batch, before it asks how far to go."""
    query = Query(there, stream_options(), ReaderWithoutLimits).start()
    there.cluster.produce("t", 0, 5)
    query.trigger()
    query.start()
    there.cluster.add_partition("t")
    there.cluster.produce("t", 0, 5)
    there.cluster.produce("t", 1, 5)
    query.trigger()

    assert {tp.partition: at for tp, at in query.offsets_read().items()} == {0: (0, 10), 1: (0, 5)}

"""In which partitions keys are, by the bytes that this connector would write: on topics in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning import key_partitions
from pyspark_upsert_kafka.connector.planning.key_partitions import KeyPlace, keys_of
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Range, Share, TopicPartition
from pyspark_upsert_kafka.core.table import Table, table_to_read
from pyspark_upsert_kafka.kafka.outgoing_messages import partition_of
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options

PARTITIONS = 5


def options(*keys: str) -> ReadOptions:
    """Of a table with these keys."""
    return read_options(table_options(primary_key=",".join(keys)), format_options, stream=False)


def table(*types: DataType) -> Table:
    """A table with keys of these types."""
    names = [f"k{at}" for at in range(len(types))]
    schema = StructType()
    for name, type_ in zip(names, types, strict=True):
        schema = schema.add(name, type_)
    return table_to_read(schema.add("v", LongType()), options(*names))


LONG, TEXT = LongType(), StringType()


@pytest.mark.parametrize(
    ("types", "values", "keys"),
    [
        ([LONG], [[1]], [(1,)]),
        ([LONG], [[1, 2]], [(1,), (2,)]),
        ([LONG, TEXT], [[1, 2], ["a", "b"]], [(1, "a"), (1, "b"), (2, "a"), (2, "b")]),
        ([LONG, TEXT], [[1], None], None),
        ([LONG], [range(1000)], [(at,) for at in range(1000)]),
        ([LONG], [range(1001)], None),
        ([LONG, LONG], [range(40), range(26)], None),
        # Two spellings of one value.
        ([DoubleType()], [[1.0]], None),
        ([FloatType()], [[1.0]], None),
        ([TimestampType()], [[None]], None),
        ([LONG, DoubleType()], [[1], [1.0]], None),
        # What is no value of the column is nowhere in particular.
        ([ByteType()], [[127]], [(127,)]),
        ([ByteType()], [[128]], None),
        ([LONG], [[2**63]], None),
        ([LONG], [["a"]], None),
    ],
)
def test_the_keys_that_values_name(
    types: list[DataType],
    values: list[Sequence[Any] | None],
    keys: list[tuple[Any, ...]] | None,
) -> None:
    """All that have one of the values in each column, where they are a few and each has one spelling."""
    found = keys_of(table(*types), values)

    if keys is None:
        assert found is None
    else:
        assert found is not None
        assert [tuple(row.values()) for row in found.to_pylist()] == keys


class Log:
    """First messages of partitions; plays the client and its reader."""

    def __init__(self, **keys: list[bytes]) -> None:
        self.keys = {int(name[1:]): each for name, each in keys.items()}
        self.read_of: list[Range] = []

    def reader(self, _: object) -> Log:
        """Itself."""
        return self

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """The first batch; whoever wants more reads too much."""
        self.read_of.append(range_)
        keys = self.keys.get(range_.partition)
        if keys:
            column = BytesColumn.of(keys)
            yield RawBatch("t", range_.partition, column, column, [*range(len(keys))])
            raise AssertionError("more than the first messages were read")


def key(number: int) -> bytes:
    """A key as it is written."""
    return b'{"k0":%d}' % number


def numbers_in(partition: int, count: int = 1) -> list[int]:
    """The first numbers whose keys are in a partition."""
    found = (each for each in range(10_000) if partition_of(key(each), PARTITIONS) == partition)
    return [next(found) for _ in range(count)]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch):
    """Makes the place of keys of a table whose partitions begin with these messages."""

    def made(log: Log, *keys: object, type_: DataType = LONG) -> KeyPlace:
        monkeypatch.setattr(key_partitions, "load_client", lambda _: log)
        arrow = pa.float64() if isinstance(type_, DoubleType) else pa.int64()
        columns = pa.RecordBatch.from_arrays([pa.array(keys, arrow)], ["k0"])
        return KeyPlace(columns, table(type_), options("k0"))

    return made


RANGES = [
    Range("t", at, 0, 10, share=Share(0, 2, PARTITIONS, 10 * PARTITIONS))
    for at in range(PARTITIONS)
]


def test_the_partitions_of_keys(place) -> None:
    """Each is where its bytes say; of one of them the first messages are looked at, whole."""
    (one,), (other,) = numbers_in(1), numbers_in(3)
    log = Log(p1=[key(each) for each in numbers_in(1, 3)])

    found = place(log, one, other).partitions(RANGES, {"t": PARTITIONS})

    assert found == {TopicPartition("t", 1), TopicPartition("t", 3)}
    assert [(each.partition, each.share) for each in log.read_of] == [(1, None)]


@pytest.mark.parametrize("ours", [True, False])
def test_keys_that_others_have_written_may_be_anywhere(place, caplog, ours: bool) -> None:
    """In another spelling, or in another partition than their bytes say: a warning tells it."""
    (one,) = numbers_in(1)
    elsewhere = Log(p1=[key(one), key(numbers_in(2)[0])])
    spelt = Log(p1=[b'{"k0": %d}' % one])
    for log in (elsewhere, spelt) if not ours else (Log(p1=[key(one)]), Log()):
        found = place(log, one).partitions(RANGES, {"t": PARTITIONS})
        assert found == ({TopicPartition("t", 1)} if ours else None)

    assert len(caplog.messages) == (0 if ours else 2)
    assert all("topic 't' has a key in partition 1" in text for text in caplog.messages)


@pytest.mark.parametrize(("at", "believed"), [(998, False), (999, False), (1000, True)])
def test_the_first_thousand_messages_are_compared(place, at: int, believed: bool) -> None:
    """The rest of a batch is not."""
    (one,), (other,) = numbers_in(1), numbers_in(2)
    keys = [key(one)] * 1100
    keys[at] = key(other)

    found = place(Log(p1=keys), one).partitions(RANGES, {"t": PARTITIONS})

    assert (found is not None) is believed


def test_a_topic_without_the_partition_of_a_key_is_looked_at_in_another(place) -> None:
    """One that has messages; a topic without any tells nothing, and holds no key."""
    (one,) = numbers_in(1)
    log = Log(p3=[key(each) for each in numbers_in(2)])
    only = [RANGES[3]]

    assert place(log, one).partitions(only, {"t": PARTITIONS}) is None
    assert place(log, one).partitions([], {"t": PARTITIONS}) == {TopicPartition("t", 1)}


@pytest.mark.parametrize(("value", "known"), [(0.0, False), (-0.0, False), (1.0, True)])
def test_zero_has_two_spellings(place, value: float, known: bool) -> None:
    """Equal keys, written as other bytes, may be in two partitions."""
    found = place(Log(), value, type_=DoubleType()).partitions(RANGES, {"t": PARTITIONS})

    assert (found is not None) is known


def test_a_registry_that_does_not_know_the_key_tells_nothing(place, caplog, monkeypatch) -> None:
    """Every partition is read then, and a warning says why."""

    def fails(_: object) -> list[bytes]:
        raise SchemaError("no schema of this name")

    found = place(Log(), 1)
    monkeypatch.setattr(found._bytes, "of", fails)

    assert found.partitions(RANGES, {"t": PARTITIONS}) is None
    assert "since the key's bytes are not known: no schema of this name" in caplog.text


def test_whole_numbers_are_no_floating_zero(place) -> None:
    """They have one spelling."""
    found = place(Log(), 0).partitions(RANGES, {"t": PARTITIONS})
    assert found == {TopicPartition("t", partition_of(key(0), PARTITIONS))}
    assert keys_of(table(IntegerType()), [[0]]) is not None

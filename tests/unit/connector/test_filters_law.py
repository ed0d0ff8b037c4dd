"""A read that takes filters shows the same rows as one that does not: over any table, and any filters that Spark passes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyspark.sql import datasource
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning import key_partitions
from pyspark_upsert_kafka.connector.planning.batch_reader import (
    Narrowing,
    conditions,
    ranges_of_batch,
)
from pyspark_upsert_kafka.connector.reading import task_reading
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.kafka.outgoing_messages import partition_of
from tests.laws import FULL, law
from tests.table_options import table_options
from tests.unit.connector.memory_topics import NO_TIME, MemoryTopics, Message
from tests.unit.connector.sql_filters import COMPARISONS, TEXTS, is_wanted

T0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
T0_MS = 1_767_225_600_000

COLUMNS = (
    StructType()
    .add("_topic", StringType())
    .add("part", IntegerType())
    .add("_offset", LongType())
    .add("_timestamp", TimestampType())
    .add("id", LongType())
    .add("name", StringType())
    .add("score", DoubleType())
    .add("_partition", LongType())
)
"""``part`` is the partition under a name of the user's own; ``_partition`` is a column of the row."""

CONSTANTS: dict[str, st.SearchStrategy[Any]] = {
    "_topic": st.sampled_from(["t", "u", "t2", ""]),
    "part": st.integers(-1, 4),
    "_partition": st.integers(-1, 4),
    "_offset": st.integers(-1, 9) | st.just(2**63 - 1),
    "_timestamp": st.integers(-3, 9).map(lambda s: T0 + timedelta(seconds=s))
    | st.sampled_from([datetime(1960, 1, 1, tzinfo=timezone.utc), T0 + timedelta(microseconds=1)]),
    "id": st.integers(-1, 5),
    "name": st.sampled_from(["a", "b", "ab", ""]),
    "score": st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf")]),
}

TEXT_COLUMNS = ("_topic", "name")

OF_ANY = ("IsNull", "IsNotNull", "In", "EqualNullSafe", *COMPARISONS)
OF_TEXTS = (*TEXTS,)

OF_PLACES = ("_topic", "part", "_offset", "_timestamp")

ids = st.integers(0, 2)
names = st.sampled_from(["a", "ab"])
rarely = st.sampled_from([False] * 7 + [True])


@st.composite
def filters(draw: st.DrawFn, columns: Sequence[str]) -> list[Any]:
    """Filters that Spark passes on: one comparison of a column with constants each, some of them negated."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        column = draw(st.sampled_from(columns))
        constant = st.none() if draw(rarely) else CONSTANTS[column]
        comparison = draw(st.sampled_from([*OF_ANY, *(OF_TEXTS if column in TEXT_COLUMNS else ())]))
        class_ = getattr(datasource, comparison)
        if comparison in ("IsNull", "IsNotNull"):
            made = class_((column,))
        elif comparison == "In":
            made = class_((column,), tuple(draw(st.lists(constant, max_size=3))))
        else:
            made = class_((column,), draw(constant))
        found.append(datasource.Not(made) if draw(rarely) else made)
    return found


@st.composite
def spellings(draw: st.DrawFn, id_: int, name: str) -> bytes:
    """A key of two columns, as one of several writers spells it."""
    fields = [f'"id":{id_}', f'"name":"{name}"']
    if draw(st.booleans()):
        fields.reverse()
    blank = draw(st.sampled_from(["", " "]))
    return ("{" + f",{blank}".join(fields) + blank + "}").encode()


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """A message of any writer: the value's copy of the key may be another one, and neither need be readable."""
    id_, name = draw(ids), draw(names)
    time_ms = draw(st.integers(0, 9).map(lambda s: T0_MS + s * 1000) | st.just(NO_TIME))
    key = draw(st.sampled_from([None, b"{"]) if draw(rarely) else spellings(id_, name))
    value = b"{" if draw(rarely) else draw(values(draw(ids) if draw(rarely) else id_, name))
    return Message(key, value, time_ms)


@st.composite
def values(draw: st.DrawFn, id_: int, name: str) -> bytes | None:
    """A row, or a tombstone."""
    if draw(st.sampled_from([False, False, True])):
        return None
    score = draw(st.sampled_from([0.0, 1.0, None, "NaN"]))
    return json.dumps({"id": id_, "name": name, "score": score, "_partition": id_}).encode()


def options(mode: str, **more: str) -> ReadOptions:
    """How topics ``t`` and ``u`` are read."""
    keyed = (
        {"primary-key": None, "key.format": None}
        if mode == "append"
        else {"primary-key": "id,name"}
    )
    given = table_options(
        **{
            "topic": "t;u",
            "read.mode": mode,
            "scan.filter-pushdown": "one-filter-per-load",
            "metadata.part": "partition",
            "metadata._partition": "none",
            "error-handling.mode": "ignore",
            **keyed,
            **more,
        }
    )
    return read_options(given, format_options, stream=False)


class Topics(MemoryTopics):
    """Topics, with a read of them in which every partition is read at once."""

    def rows(self, options: ReadOptions, filters: list[Any] | None) -> Iterator[dict[str, Any]]:
        """The rows of a read, which takes filters or is given none."""
        self.topic_settings = {"cleanup.policy": "delete", "min.compaction.lag.ms": "0"}
        columns = StructType([*COLUMNS])
        if options.mode == "changelog":
            columns.add("_change_type", StringType())
        table = table_to_read(columns, options)
        narrowing = None if filters is None else Narrowing(table, options, conditions(filters))
        ranges = ranges_of_batch(self, options, narrowing)
        self.read_of.clear()
        for batch in task_reading.read_ranges(ranges, table, options):
            yield from batch.to_pylist()


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Topics]]:
    """Where a test puts its topics, which reading tasks find there."""
    there: list[Topics] = []
    for module in (task_reading, key_partitions):
        monkeypatch.setattr(module, "load_client", lambda _: there[-1])
    return there


def same_rows(topics: Topics, how: ReadOptions, chosen: list[Any]) -> bool:
    """Asserts the law, and says whether the filters left something out."""
    everything = list(topics.rows(how, None))
    return shows_the_same(topics, how, chosen, everything, set(topics.read_of))


def shows_the_same(
    topics: Topics,
    how: ReadOptions,
    chosen: list[Any],
    everything: list[dict[str, Any]],
    whole: set[TopicPartition],
) -> bool:
    """Asserts the law, given what a read without filters shows, and what it reads."""
    unfiltered = [row for row in everything if is_wanted(chosen, row)]
    filtered = [row for row in topics.rows(how, chosen) if is_wanted(chosen, row)]

    assert sorted(map(repr, filtered)) == sorted(map(repr, unfiltered))
    return topics.read_of < whole


partitions = st.lists(st.lists(messages(), max_size=8), min_size=1, max_size=3)


@pytest.mark.parametrize("mode", ["snapshot", "changelog", "append"])
@given(
    t=partitions,
    u=partitions,
    chosen=filters([*CONSTANTS, *OF_PLACES * 4]),
    pieces=st.sampled_from([None, 5]),
)
@law(250, few=20)
def test_rows_are_the_same(mode, topics, t, u, chosen, pieces):
    """Over tables whose keys are in any partition, in several at once, and spelt in several ways."""
    there = Topics()
    there.fill("t", *t)
    there.fill("u", *u)
    topics.append(there)
    # Pieces of a snapshot are for tables whose values agree with their keys.
    how = replace(options(mode), min_partitions=None if mode == "snapshot" else pieces)

    if same_rows(there, how, chosen):
        event("a partition is left out")


def spelt(id_: int, name: str = "a") -> bytes:
    """A key, or a value with no more in it."""
    return f'{{"id":{id_},"name":"{name}"}}'.encode()


LATER, LATEST = T0_MS + 1000, T0_MS + 2000
ODD_TABLE = [
    [
        Message(spelt(1), spelt(1, "ab"), LATEST), Message(spelt(2), spelt(2), T0_MS), Message(spelt(1), spelt(1), T0_MS),
        Message(spelt(3), spelt(3), LATER), Message(spelt(3), None, LATEST), Message(spelt(2), spelt(2), NO_TIME),
    ],
    [Message(spelt(1), spelt(1), LATER), Message(None, spelt(4), LATER), Message(b"{", spelt(5)), Message(spelt(6), b"{")],
    [],
]  # fmt: skip
"""Keys that are overwritten by earlier times, in two partitions, and whose last row a filter may not want; messages without
a key, a value or a time, and with what cannot be read."""

ODD_CONSTANTS: dict[str, list[Any]] = {
    "_topic": ["t", "u", "x", None],
    "part": [-1, 0, 1, 2, None],
    "_partition": [0, 1, None],
    "_offset": [-1, 0, 1, 2, 5, 6, 2**63 - 1, None],
    "_timestamp": [
        *(datetime.fromtimestamp(ms / 1000, timezone.utc) for ms in (T0_MS, LATER, LATEST, LATEST + 1)),
        T0 + timedelta(microseconds=1), T0 - timedelta(microseconds=1), datetime(1960, 1, 1, tzinfo=timezone.utc), None,
    ],
    "id": [1, 3, None],
}  # fmt: skip


def every_filter() -> Iterator[Any]:
    """Each comparison of each column with each of its odd constants, and that negated."""
    for column, constants in ODD_CONSTANTS.items():
        yield from (getattr(datasource, each)((column,)) for each in ("IsNull", "IsNotNull"))
        for comparison in ("EqualNullSafe", *COMPARISONS, *(TEXTS if column == "_topic" else ())):
            for constant in constants:
                made = getattr(datasource, comparison)((column,), constant)
                yield made
                yield datasource.Not(made)
        yield datasource.In((column,), tuple(constants[:2]))
        yield datasource.Not(datasource.In((column,), tuple(constants[:2])))
        yield datasource.In((column,), ())


MODES = ["snapshot", "changelog", "append"]


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_the_same_with_each_filter(mode, topics):
    """Over one odd table; a filter on offsets or times, for one, does not bring back a row that was overwritten."""
    there = Topics()
    there.fill("t", *ODD_TABLE)
    there.fill("u", [Message(spelt(1), spelt(1))])
    topics.append(there)
    how = options(mode)

    everything = list(there.rows(how, None))
    whole = set(there.read_of)

    left_out = [
        shows_the_same(there, how, [each], everything, whole)
        for at, each in enumerate(every_filter())
        if FULL or mode == "snapshot" or at % 3 == MODES.index(mode)  # a third of them, or another
    ]
    assert any(left_out)
    after = datasource.GreaterThan(("_offset",), 0), datasource.LessThan(("_offset",), 2)
    same_rows(there, how, [*after])
    same_rows(there, how, [*after, datasource.EqualTo(("part",), 0)])


@st.composite
def tables_of_one_writer(draw: st.DrawFn) -> list[list[Message]]:
    """Partitions that this connector has filled: each key has one spelling and one place."""
    count = draw(st.integers(1, 4))
    found: list[list[Message]] = [[] for _ in range(count)]
    for _ in range(draw(st.integers(0, 12))):
        id_, name = draw(ids), draw(names)
        key = f'{{"id":{id_},"name":"{name}"}}'.encode()
        found[partition_of(key, count)].append(Message(key, draw(values(id_, name))))
    return found


@pytest.mark.parametrize("mode", ["snapshot", "changelog"])
@given(
    t=tables_of_one_writer(),
    u=tables_of_one_writer(),
    chosen=filters(["id", "name", "id", "name", "part"]),
)
@law(250, few=20)
def test_rows_of_keys_are_the_same(mode, topics, t, u, chosen):
    """With ``murmur2``, over tables of which it is true."""
    there = Topics()
    there.fill("t", *t)
    there.fill("u", *u)
    topics.append(there)

    if same_rows(there, options(mode, **{"scan.key-partitioner": "murmur2"}), chosen):
        event("a partition is left out")


def keyed(*ids: int, count: int, at: int | None = None) -> list[list[Message]]:
    """Rows of ids, each where this connector puts it, or all in one partition."""
    found: list[list[Message]] = [[] for _ in range(count)]
    for id_ in ids:
        key = b'{"id":%d,"name":"a"}' % id_
        found[partition_of(key, count) if at is None else at].append(
            Message(key, b'{"id":%d,"name":"a"}' % id_)
        )
    return found


ONE_KEY = [datasource.EqualTo(("id",), 5), datasource.EqualTo(("name",), "a")]
HASHED = {"scan.key-partitioner": "murmur2", "topic": "t"}


def place_of(id_: int, count: int) -> TopicPartition:
    """Where this connector puts a key."""
    return TopicPartition("t", partition_of(b'{"id":%d,"name":"a"}' % id_, count))


def test_one_key_is_read_of_one_partition(topics):
    """Without the option of every partition."""
    there = Topics()
    there.fill("t", *keyed(*range(40), count=4))
    topics.append(there)

    assert len(list(there.rows(options("snapshot", topic="t"), ONE_KEY))) == 40
    rows = list(there.rows(options("snapshot", **HASHED), ONE_KEY))
    assert [row["id"] for row in rows if row["id"] == 5] == [5]
    assert there.read_of == {place_of(5, 4)}


@pytest.mark.parametrize(
    "partitions",
    [
        [
            *keyed(*range(40), count=4),
            *keyed(count=4),
        ],  # the topic had four partitions, and has eight
        keyed(*range(40), count=2, at=1),
        [[Message(b'{"id": 5, "name": "a"}', b"{}")], [Message(b'{"id": 5, "name": "a"}', b"{}")]],
    ],
)
def test_a_promise_that_the_first_messages_break_is_not_believed(topics, caplog, partitions):
    """A key in a partition, or with bytes, that this connector would not choose: every partition is read, and that is said."""
    there = Topics()
    there.fill("t", *partitions)
    topics.append(there)

    rows = list(there.rows(options("snapshot", **HASHED), ONE_KEY))
    everything = list(there.rows(options("snapshot", topic="t"), None))

    assert rows == everything
    assert "Every partition is read: topic 't' has a key in partition" in caplog.text


@pytest.mark.parametrize(
    "chosen",
    [
        ONE_KEY[:1],
        [ONE_KEY[0], datasource.EqualTo(("name",), None)],
        [ONE_KEY[0], datasource.StringStartsWith(("name",), "a")],
        [datasource.In(("id",), tuple(range(2000))), ONE_KEY[1]],
        [datasource.EqualTo(("id",), 2**70), ONE_KEY[1]],
    ],
)
def test_what_names_no_whole_key_leaves_every_partition(topics, chosen):
    """Too many keys, part of a key, NULL, or a value that the column cannot hold."""
    there = Topics()
    there.fill("t", *keyed(*range(40), count=4))
    topics.append(there)

    list(there.rows(options("snapshot", **HASHED), chosen))

    assert len(there.read_of) == 4


def test_what_is_not_read_is_told(topics, caplog):
    """One line, with what Spark does with it; nothing is said where everything is read."""
    there = Topics()
    there.fill("t", [Message(b"{}", b"{}")] * 4, [Message(b"{}", b"{}")] * 6)
    topics.append(there)
    how = options("append", topic="t")

    list(there.rows(how, [datasource.GreaterThanOrEqual(("_offset",), 0)]))
    assert caplog.records == []
    list(
        there.rows(how, [datasource.EqualTo(("part",), 1), datasource.GreaterThan(("_offset",), 3)])
    )
    (record,) = caplog.records
    assert "leave 1 of 2 Kafka partitions and 2 of 10 offsets to be read." in record.getMessage()

"""Two queries on real Kafka and real Spark while data arrives, and whether both tables are right in the end."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pyarrow as pa
from pyspark.sql import functions as f

from pyspark_upsert_kafka.cli import parser
from pyspark_upsert_kafka.cli.chart import Chart
from pyspark_upsert_kafka.cli.local_spark import local_spark
from pyspark_upsert_kafka.cli.show.topic_reading import raw_messages
from pyspark_upsert_kafka.cli.terminal import echo
from pyspark_upsert_kafka.connector.listener import ProgressListener
from pyspark_upsert_kafka.connector.writing.update_mode import upsert_sink
from pyspark_upsert_kafka.core.errors import UpsertKafkaError, shown
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.local import LocalKafka

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_VIEW = "user_id BIGINT, page_id BIGINT, view_time TIMESTAMP_NTZ, user_region STRING"
_COUNT = "user_region STRING, pv BIGINT, uv BIGINT"
_USER = "user_id BIGINT, user_name STRING, user_region STRING"
_CHANGE = f"{_USER}, _change_type STRING"

_INTRODUCTION = """
People view pages: one JSON message each in topic {views}. A streaming query counts them per
region and upserts the counts into topic {counts}: the region is the message key, so
the newest message of a region is its row. Meanwhile users move, leave and come back in topic {users};
a second query copies each change to topic {copy}, deletes included.

Follow the table in another terminal:
  {follow}

The counts (PV = page views), read back from the topic while the queries run:
"""

_Key = TypeVar("_Key")
_Row = TypeVar("_Row")


REGIONS = {
    "Africa": 11,
    "Asia": 30,
    "Europe": 22,
    "North America": 19,
    "Oceania": 4,
    "South America": 14,
}
"""Each region and its share of the users, in percent."""

_WAVE = 25_000
"""Page views in a wave, about; there are at least three waves and at most twelve."""

_NAMES = ("Ada", "Alan", "Barbara", "Dennis", "Donald", "Edsger", "Frances", "Grace", "Ken", "Margaret")  # fmt: skip
_OPENING = datetime(2026, 1, 1, 8)  # noqa: DTZ001 - view_time is a TIMESTAMP_NTZ
_VIEWS_PER_USER = 60
_CHANGING = 0.05  # of the users, in a wave
_LEAVING = 0.3  # of those who change something


class PageView(NamedTuple):
    """A message of topic ``page_views``."""

    view_id: int
    user_id: int
    page_id: int
    view_time: datetime
    user_region: str


class UserChange(NamedTuple):
    """A change of the table ``users``."""

    user_id: int
    user_name: str | None
    user_region: str | None
    kind: str


class Wave(NamedTuple):
    """Data that arrives together; no user changes twice in it, so its changes need no order."""

    changes: list[UserChange]
    views: list[PageView]


def generate_waves(messages: int, seed: int = 2026) -> Iterator[Wave]:
    """The waves of a run with about this number of page views; equal arguments give equal data."""
    random = Random(seed)  # noqa: S311 - a game, not a secret
    users = range(1, max(10, messages // _VIEWS_PER_USER) + 1)
    regions: dict[int, str] = {}
    views, count = 0, min(12, max(3, messages // _WAVE))
    for number in range(count):
        changing = (
            users if number == 0 else random.sample(users, max(1, int(len(users) * _CHANGING)))
        )
        changes = [_change(user, regions, random) for user in changing]
        present = list(regions)
        seen = [
            _view(view, random.choice(present), regions, random)
            for view in range(views, views + messages // count)
        ]
        views += len(seen)
        yield Wave(changes, seen)


def _change(user: int, regions: dict[int, str], random: Random) -> UserChange:
    """An existing user moves or leaves; another one arrives."""
    if user in regions and random.random() < _LEAVING:
        del regions[user]
        return UserChange(user, None, None, "delete")
    others = [region for region in REGIONS if region != regions.get(user)]
    (regions[user],) = random.choices(others, [REGIONS[region] for region in others])
    return UserChange(user, _NAMES[user % len(_NAMES)], regions[user], "upsert")


def _view(view: int, user: int, regions: dict[int, str], random: Random) -> PageView:
    return PageView(
        view,
        user,
        random.randrange(1, 200),
        _OPENING + timedelta(milliseconds=7 * view),
        regions[user],
    )


def expected_counts(views: Iterable[PageView]) -> dict[str, tuple[int, int]]:
    """Region -> PV and UV."""
    pv: Counter[str] = Counter()
    users: dict[str, set[int]] = {}
    for view in views:
        pv[view.user_region] += 1
        users.setdefault(view.user_region, set()).add(view.user_id)
    return {region: (pv[region], len(users[region])) for region in pv}


def expected_users(changes: Iterable[UserChange]) -> dict[int, tuple[str | None, str | None]]:
    """User -> name and region, of those who have not left."""
    last = {change.user_id: change for change in changes}
    return {
        user: (change.user_name, change.user_region)
        for user, change in last.items()
        if change.kind != "delete"
    }


def user_with_most_changes(changes: Iterable[UserChange]) -> int:
    """The user with the most changes among those who left once, if any did."""
    history: dict[int, list[str]] = {}
    for change in changes:
        history.setdefault(change.user_id, []).append(change.kind)
    return max(history, key=lambda user: ("delete" in history[user], len(history[user])))


def over_batches(changes: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Lines of equal length: a batch changes a region once, so a region seen again starts the next batch.

    >>> over_batches([("Asia", 3), ("Europe", 1), ("Asia", 5), ("Asia", 9), ("Europe", 4)])
    {'Asia': [3, 5, 9], 'Europe': [1, 1, 4]}
    """
    batches: list[dict[str, int]] = [{}]
    for region, pv in changes:
        if region in batches[-1]:
            batches.append({})
        batches[-1][region] = pv
    lines: dict[str, list[int]] = {region: [] for region in sorted({r for b in batches for r in b})}
    for batch in batches:
        for region, line in lines.items():
            line.append(batch.get(region, line[-1] if line else 0))
    return lines


@dataclass(frozen=True)
class Topics:
    """The topics on one Kafka, and the connector's options for them.

    Args:
        servers: Its address.
        suffix: Added to the names, so that two runs on one Kafka use different topics.
    """

    servers: str
    suffix: str = ""

    def __getitem__(self, name: str) -> str:
        return name + self.suffix

    @property
    def views(self) -> dict[str, str]:
        """Each message is a row of its own."""
        return {
            "topic": self["page_views"],
            "properties.bootstrap.servers": self.servers,
            "properties.allow.auto.create.topics": "true",
            "value.format": "json",
        }

    @property
    def counts(self) -> dict[str, str]:
        """A table: each message upserts or deletes the row of its key."""
        return self._table("pageviews_per_region", "user_region")

    @property
    def users(self) -> dict[str, str]:
        """A table."""
        return self._table("users", "user_id")

    @property
    def copy(self) -> dict[str, str]:
        """A table."""
        return self._table("users_copy", "user_id")

    def _table(self, name: str, key: str) -> dict[str, str]:
        return {**self.views, "topic": self[name], "primary-key": key, "key.format": "json"}


def _count_views(spark: SparkSession, topics: Topics, checkpoint: str) -> StreamingQuery:
    """Starts the query that counts PV and exact UV per region, from an append topic to an upsert topic.

    A streaming query cannot use COUNT(DISTINCT user_id); the size of a set is the same.
    """
    views = spark.readStream.format("upsert-kafka").schema(_VIEW).options(**topics.views)
    counts = (
        views.option("read.mode", "append")
        .load()
        .groupBy("user_region")
        .agg(
            f.count("*").alias("pv"),
            f.size(f.collect_set("user_id")).cast("bigint").alias("uv"),
        )
    )
    return (
        counts.writeStream.outputMode("update")
        .foreachBatch(upsert_sink(topics.counts))
        .option("checkpointLocation", checkpoint)
        .queryName("counts")
        .start()
    )


def _copy_users(spark: SparkSession, topics: Topics, checkpoint: str) -> StreamingQuery:
    """Starts the query that copies each change of a user from one topic to the other, deletes included."""
    changes = spark.readStream.format("upsert-kafka").schema(_CHANGE).options(**topics.users).load()
    return (
        changes.writeStream.format("upsert-kafka")
        .options(**topics.copy)
        .option("checkpointLocation", checkpoint)
        .queryName("copy")
        .start()
    )


def _write(spark: SparkSession, topics: Topics, wave: Wave) -> None:
    """Writes what arrives: changes, of which those of kind ``delete`` become tombstones, and views.

    The key of a view is its id, which the value does not repeat.
    """
    changes = _rows(spark, wave.changes, _CHANGE)
    changes.write.format("upsert-kafka").mode("append").options(**topics.users).save()
    keyed = {"primary-key": "view_id", "key.format": "json", "value.fields-include": "EXCEPT_KEY"}
    views = _rows(spark, wave.views, f"view_id BIGINT, {_VIEW}")
    views.write.format("upsert-kafka").mode("append").options(**topics.views, **keyed).save()


def _rows(spark: SparkSession, rows: Sequence[tuple[object, ...]], schema: str) -> DataFrame:
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    names = [column.split()[0] for column in schema.split(", ")]
    return spark.createDataFrame(pa.table(columns, names), schema)


def _read(spark: SparkSession, options: Mapping[str, str], schema: str) -> DataFrame:
    """A table, as it is now."""
    return spark.read.format("upsert-kafka").schema(schema).options(**options).load()


def _read_counts(spark: SparkSession, topics: Topics) -> dict[str, tuple[int, int]]:
    """Region -> PV and UV, read from the topic."""
    rows = _read(spark, topics.counts, _COUNT).collect()
    return {row.user_region: (row.pv, row.uv) for row in rows}


def _run_example(spark: SparkSession, topics: Topics, messages: int, picture: Path) -> None:
    """Runs both queries while data arrives, checks their results and shows them.

    Raises:
        UpsertKafkaError: A table is not what the plain recomputation says.
    """
    waves = list(generate_waves(messages))
    views, changes = [v for w in waves for v in w.views], [c for w in waves for c in w.changes]
    names = {each: getattr(topics, each)["topic"] for each in ("views", "counts", "users", "copy")}
    show = ["show", "--bootstrap-servers", topics.servers, "--topic", names["counts"]]
    show += ["--schema", _COUNT, "--primary-key", "user_region"]
    follow = shlex.join(["python", "-m", "pyspark_upsert_kafka", *show, "--follow"])
    echo(_INTRODUCTION.format(**names, follow=follow))

    echo(f"{'arrived':>10} |" + "".join(f"{region:>15}" for region in REGIONS))
    _write(spark, topics, waves[0])  # which creates the topics
    with _queries(spark, topics) as queries:
        arrived = 0
        for number, wave in enumerate(waves):
            if number:
                _write(spark, topics, wave)
            arrived += len(wave.views)
            _print_counts(spark, topics, f"{arrived:,}")
            for query in queries:
                if not query.isActive:  # it has failed, and nothing would come any more
                    query.awaitTermination()
        _wait_for(queries)
        _print_counts(spark, topics, "all done")

    echo("\nBoth tables, read back as batches and recomputed in plain Python:")
    compare(names["counts"], _read_counts(spark, topics), expected_counts(views))
    copied = {
        row.user_id: (row.user_name, row.user_region)
        for row in _read(spark, topics.copy, _USER).collect()
    }
    compare(names["copy"], copied, expected_users(changes))

    echo(f"\nThe table in topic {names['counts']} (UV = different users):")
    given = parser(["show"]).parse_args(show)
    given.run(given)

    user = user_with_most_changes(changes)
    echo(f"User {user} in topic {names['copy']}, message by message:")
    for message in raw_messages(Properties({"bootstrap.servers": topics.servers}), names["copy"]):
        if message.key == b'{"user_id":%d}' % user:
            said = f"  offset {message.offset:>5}  {shown(message.key)} → {shown(message.value)}"
            echo(said + ("   a tombstone: the row is deleted" if message.value is None else ""))

    history = _read(
        spark,
        {**topics.counts, "read.mode": "changelog"},
        f"{_COUNT}, _change_type STRING, _timestamp TIMESTAMP, _offset BIGINT",
    )
    in_time = history.orderBy("_timestamp", "_offset").select("user_region", "pv").collect()
    lines = over_batches((row.user_region, row.pv) for row in in_time)
    chart = Chart("Page views (PV) per region", "batch of the streaming query", "PV", lines)
    picture.write_text(chart.svg(), encoding="utf-8")
    echo(f"\nA picture of how they grew: {picture}")


@contextmanager
def _queries(spark: SparkSession, topics: Topics) -> Iterator[list[StreamingQuery]]:
    """Both queries, which have processed what is there and run until the end of the block."""
    listener = ProgressListener(print_to=sys.stdout)
    spark.streams.addListener(listener)
    with tempfile.TemporaryDirectory(prefix="demo-checkpoints-") as checkpoints:
        queries = [
            _count_views(spark, topics, f"{checkpoints}/counts"),
            _copy_users(spark, topics, f"{checkpoints}/copy"),
        ]
        try:
            _wait_for(queries)
            yield queries
        finally:
            for query in queries:
                query.stop()
            spark.streams.removeListener(listener)


def _wait_for(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        query.processAllAvailable()


def _print_counts(spark: SparkSession, topics: Topics, arrived: str) -> None:
    counts = _read_counts(spark, topics)
    pvs = (counts.get(region, (0, 0))[0] for region in REGIONS)
    echo(f"{arrived:>10} |" + "".join(f"{pv:>15,}" for pv in pvs))


def compare(table: str, found: Mapping[_Key, _Row], expected: Mapping[_Key, _Row]) -> None:
    """Prints that both are equal.

    Raises:
        UpsertKafkaError: They are not.
    """
    for key in found.keys() | expected.keys():
        if found.get(key) != expected.get(key):
            raise UpsertKafkaError(
                f"Table {table!r} has {found.get(key)!r} for {key!r}, where the recomputation has "
                f"{expected.get(key)!r}. That is a bug: please report it."
            )
    echo(f"  {table}: {len(found):,} rows, all equal")


def run_demo(messages: int, folder: Path) -> None:
    """Runs the demo on Kafka and Spark.

    Args:
        messages: How many page views, about.
        folder: For the chart and Spark's log.

    Raises:
        UpsertKafkaError: A table is not what the plain recomputation says.
    """
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "spark.log"
    with demo_topics() as topics:
        echo(f"Starting Spark; its log goes to {log}")
        with local_spark(log) as spark:
            _run_example(spark, topics, messages, folder / "page_views_per_region.svg")
    echo(f"Done in {time.monotonic() - began:.0f} seconds.")


@contextmanager
def demo_topics() -> Iterator[Topics]:
    """Topics on the cluster of KAFKA_BOOTSTRAP_SERVERS, or on a broker started here."""
    running = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if running:
        topics = Topics(running, f"-{uuid.uuid4().hex[:6]}")
        echo(f"Using the Kafka at {running}; the topics there end in {topics.suffix!r} and remain.")
        yield topics
        return
    echo("Starting Apache Kafka; the first time it is downloaded, 44 MB")
    with LocalKafka(config={"num.partitions": "2", "log.cleanup.policy": "compact"}) as kafka:
        yield Topics(kafka.bootstrap_servers)

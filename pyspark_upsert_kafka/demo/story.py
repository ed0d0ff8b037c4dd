"""The demo, act by act."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pyspark_upsert_kafka.cli.say import say
from pyspark_upsert_kafka.core.errors import UpsertKafkaError, shown
from pyspark_upsert_kafka.demo import page_views, users
from pyspark_upsert_kafka.demo.chart import Chart
from pyspark_upsert_kafka.demo.topics import Topics
from pyspark_upsert_kafka.demo.web_site import REGIONS, Wave, waves

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Key = TypeVar("Key")
Row = TypeVar("Row")

_WHAT_RUNS = """
People view pages: one JSON message each in topic {views}. A streaming query counts them per
region and upserts the counts into topic {counts}: the region is the message key, so
the newest message of a region is its row. Meanwhile users move, leave and come back in topic {users};
a second query copies each change to topic {copy}, deletes included.

The counts (PV = page views), read back from the topic while the queries run:
"""


def tell(spark: SparkSession, topics: Topics, messages: int, picture: Path) -> None:
    """Runs both queries while data arrives, checks what they wrote, and shows it.

    Raises:
        UpsertKafkaError: A table is not what the plain recomputation says.
    """
    happened = list(waves(messages))
    names = {"views": page_views.VIEWS, "counts": page_views.COUNTS}
    names |= {"users": users.USERS, "copy": users.COPY}
    say(_WHAT_RUNS.format(**{word: topics.named(name) for word, name in names.items()}))
    _let_it_happen(spark, topics, happened)
    _check(spark, topics, happened)
    _show(spark, topics, happened)
    _draw(spark, topics, picture)


def _let_it_happen(spark: SparkSession, topics: Topics, happened: list[Wave]) -> None:
    """Data arrives in waves, and after each the table is shown as far as the query is."""
    say(f"{'arrived':>10} |" + "".join(f"{region:>15}" for region in REGIONS))
    arrived = 0
    with _queries(spark, topics, happened[0]) as queries:
        for wave in happened:
            if wave is not happened[0]:
                _write(spark, topics, wave)
            arrived += len(wave.views)
            _show_counts(spark, topics, f"{arrived:,}")
            _raise_failure(queries)
        _wait_for(queries)
        _show_counts(spark, topics, "all done")


@contextmanager
def _queries(spark: SparkSession, topics: Topics, first: Wave) -> Iterator[list[StreamingQuery]]:
    """Both queries, running; the first data is there before, since it makes the topics."""
    _write(spark, topics, first)
    with tempfile.TemporaryDirectory(prefix="demo-checkpoints-") as checkpoints:
        queries = [
            page_views.start_counting(spark, topics, f"{checkpoints}/counts"),
            users.start_copying(spark, topics, f"{checkpoints}/copy"),
        ]
        try:
            _wait_for(queries)
            yield queries
        finally:
            for query in queries:
                query.stop()


def _wait_for(queries: list[StreamingQuery]) -> None:
    """Returns when the queries have done all that is there."""
    for query in queries:
        query.processAllAvailable()


def _raise_failure(queries: list[StreamingQuery]) -> None:
    """A query that has failed would leave the table as it is, and everybody waiting."""
    for query in queries:
        if not query.isActive:
            query.awaitTermination()


def _write(spark: SparkSession, topics: Topics, wave: Wave) -> None:
    users.write_changes(spark, topics, wave.changes)
    page_views.write_views(spark, topics, wave.views)


def _show_counts(spark: SparkSession, topics: Topics, arrived: str) -> None:
    counts = page_views.counts_now(spark, topics)
    pvs = (counts.get(region, (0, 0))[0] for region in REGIONS)
    say(f"{arrived:>10} |" + "".join(f"{pv:>15,}" for pv in pvs))


def _check(spark: SparkSession, topics: Topics, happened: list[Wave]) -> None:
    views = [view for wave in happened for view in wave.views]
    changes = [change for wave in happened for change in wave.changes]
    say("\nBoth tables, read back as batches and recomputed in plain Python:")
    counts, copy = topics.named(page_views.COUNTS), topics.named(users.COPY)
    compare(counts, page_views.counts_now(spark, topics), page_views.recomputed(views))
    compare(copy, users.copy_now(spark, topics), users.recomputed(changes))


def compare(table: str, found: Mapping[Key, Row], expected: Mapping[Key, Row]) -> None:
    """Says that both are equal.

    Raises:
        UpsertKafkaError: They are not.
    """
    for key in found.keys() | expected.keys():
        if found.get(key) != expected.get(key):
            raise UpsertKafkaError(
                f"Table {table!r} has {found.get(key)!r} for {key!r}, where the recomputation has "
                f"{expected.get(key)!r}. That is a bug: please report it."
            )
    say(f"  {table}: {len(found):,} rows, all equal")


def _show(spark: SparkSession, topics: Topics, happened: list[Wave]) -> None:
    say(f"\nThe table in topic {topics.named(page_views.COUNTS)} (UV = different users):")
    page_views.counts_table(spark, topics).orderBy("user_region").show()
    user = users.most_restless(change for wave in happened for change in wave.changes)
    say(f"User {user} in topic {topics.named(users.COPY)}, message by message:")
    for message in users.messages_of(topics, user):
        deleted = "   a tombstone: the row is deleted" if message.value is None else ""
        say(f"  offset {message.offset:>5}  {shown(message.key)} → {shown(message.value)}{deleted}")


def _draw(spark: SparkSession, topics: Topics, picture: Path) -> None:
    chart = Chart(
        "Page views (PV) per region",
        "batch of the streaming query",
        "PV",
        page_views.pv_history(spark, topics),
    )
    picture.write_text(chart.svg(), encoding="utf-8")
    say(f"\nA picture of how they grew: {picture}")

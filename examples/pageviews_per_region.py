# %% [markdown]
# # Page views and visitors per region, over time
#
# In this script a stream counts page views (PV) and different visitors (UV) per region and hour, and writes the counts to a
# topic as upserts. The topic is a table that changes. The script reads the current table and draws it.
#
# Run it cell by cell in Jupyter (with jupytext), VS Code or PyCharm, or run all of it:
# `python examples/pageviews_per_region.py`.

# %%
from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pyspark_upsert_kafka import LocalKafka, upsert_sink

# %% [markdown]
# Use your own Kafka (`KAFKA_BOOTSTRAP_SERVERS`), or start one on this machine, which is downloaded once (44 MB).

# %%
servers = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "")
if not servers:
    kafka = LocalKafka()
    kafka.start()
    servers = kafka.bootstrap_servers

run = uuid.uuid4().hex[:6]
views_topic, counts_topic = f"page_views-{run}", f"pageviews_per_region-{run}"
new = [
    NewTopic(views_topic, 2, 1),
    NewTopic(counts_topic, 2, 1, config={"cleanup.policy": "compact"}),
]
admin = AdminClient({"bootstrap.servers": servers})
for created in admin.create_topics(new).values():
    created.result()

# %% [markdown]
# Write some page views: users of four regions, in the morning; those of the afternoon follow below.

# %%
random = Random(7)
OPENING = datetime(2026, 1, 1, 8)
REGIONS = ("Africa", "Asia", "Europe", "Oceania")
sent: list[dict[str, object]] = []


def view_pages(first_hour: int, hours: int) -> None:
    """Sends the page views of some hours; users in Europe are active later than others."""
    producer = Producer({"bootstrap.servers": servers})
    for _ in range(200 * hours):
        region = random.choice(REGIONS)
        late = 0.8 if region == "Europe" else 0.3
        at = OPENING + timedelta(hours=first_hour + hours * random.betavariate(1 + late, 2 - late))
        view = {
            "user_id": random.randrange(200),
            "view_time": at.isoformat(" ", "seconds"),
            "user_region": region,
        }
        producer.produce(views_topic, value=json.dumps(view))
        sent.append(view)
    producer.flush()


view_pages(0, 6)

# %% [markdown]
# The stream. An aggregation changes rows that it has already returned, so it runs in output mode `update`, and
# `upsert_sink` writes each changed row as an upsert of its key.

# %%
spark = SparkSession.builder.getOrCreate()
views = (
    spark.readStream.format("upsert-kafka")
    .schema("user_id BIGINT, view_time TIMESTAMP_NTZ, user_region STRING")
    .option("read.mode", "append")
    .option("topic", views_topic)
    .option("properties.bootstrap.servers", servers)
    .option("value.format", "json")
    .load()
)
counts = views.groupBy("user_region", f.date_trunc("hour", "view_time").alias("hour")).agg(
    f.count("*").alias("pv"),
    f.size(f.collect_set("user_id")).cast("bigint").alias("uv"),
)
per_region = {
    "topic": counts_topic,
    "properties.bootstrap.servers": servers,
    "primary-key": "user_region,hour",
    "key.format": "json",
    "value.format": "json",
}
checkpoint = tempfile.mkdtemp(prefix="pageviews_per_region-")


def count() -> None:
    """Counts the page views since the last call. Without `trigger` the query would run until it is stopped."""
    query = (
        counts.writeStream.outputMode("update")
        .foreachBatch(upsert_sink(per_region))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


count()

# %% [markdown]
# The current table, with one row per region and hour.

# %%
table = spark.read.format("upsert-kafka").schema(
    "user_region STRING, hour TIMESTAMP, pv BIGINT, uv BIGINT"
)


def rows_now() -> list[tuple[str, datetime, int, int]]:
    """The rows of the table, by region and hour."""
    now = table.options(**per_region).load().orderBy("user_region", "hour")
    return [(row.user_region, row.hour, row.pv, row.uv) for row in now.collect()]


table.options(**per_region).load().orderBy("user_region", "hour").show(5)

# %% [markdown]
# The table as text: each region has a line of bars, one bar for each hour.


# %%
def bars(numbers: Sequence[int], most: int) -> str:
    """A bar for each number; the highest bar is the largest number of all regions."""
    return "".join(" ▁▂▃▄▅▆▇█"[round(8 * number / most)] for number in numbers)


def draw() -> None:
    """Draws PV and UV of each region for each hour."""
    found = {(region, hour): (pv, uv) for region, hour, pv, uv in rows_now()}
    hours = sorted({hour for _, hour in found})
    most = max(pv for pv, _ in found.values())
    print(f"per hour, from {hours[0]:%H:%M} to {hours[-1]:%H:%M}; the highest bar is {most}")
    for region in REGIONS:
        pv, uv = zip(*(found.get((region, hour), (0, 0)) for hour in hours), strict=True)
        print(f"{region:8} PV |{bars(pv, most)}| {sum(pv):5}")
        print(f"{'':8} UV |{bars(uv, most)}|")


draw()

# %% [markdown]
# Now the views of the afternoon arrive, and some late views of the morning. The stream continues from its checkpoint. The
# table then has more rows, and larger numbers in old rows.
#
# With pandas and matplotlib: `table.options(**per_region).load().toPandas().pivot(index="hour",
# columns="user_region", values="pv").plot()`.

# %%
view_pages(4, 8)
count()
draw()

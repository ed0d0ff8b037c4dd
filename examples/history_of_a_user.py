# %% [markdown]
# # The history of one user
#
# This script shows every change of one user. A topic of users is a table, and its changelog is the history of each row.
# A compacted topic keeps the last change of each key forever, and older changes only for a while.
#
# Run it cell by cell in Jupyter (with jupytext), VS Code or PyCharm, or run all of it:
# `python examples/history_of_a_user.py`.

# %%
from __future__ import annotations

import os
import tempfile
import uuid

from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from pyspark_upsert_kafka import LocalKafka

# %% [markdown]
# Use your own Kafka (`KAFKA_BOOTSTRAP_SERVERS`), or start one on this machine, which is downloaded once (44 MB).

# %%
servers = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "")
if not servers:
    kafka = LocalKafka()
    kafka.start()
    servers = kafka.bootstrap_servers

topic = f"users-{uuid.uuid4().hex[:6]}"
new = NewTopic(topic, 2, 1, config={"cleanup.policy": "compact"})
admin = AdminClient({"bootstrap.servers": servers})
admin.create_topics([new])[topic].result()

spark = SparkSession.builder.getOrCreate()
users = {
    "topic": topic,
    "properties.bootstrap.servers": servers,
    "primary-key": "user_id",
    "key.format": "json",
    "value.format": "json",
}

# %% [markdown]
# Users are inserted, move and are deleted.


# %%
def change(*changes: tuple[int, str | None, str | None, str]) -> None:
    """Writes changes of the table in the given order."""
    columns = "user_id BIGINT, name STRING, region STRING, _change_type STRING"
    rows = spark.createDataFrame(changes, columns).coalesce(1)  # one task keeps the order
    rows.write.format("upsert-kafka").mode("append").options(**users).save()


change((7, "Ada", "Asia", "upsert"), (8, "Alan", "Asia", "upsert"))
change((7, "Ada", "Europe", "upsert"), (8, None, None, "delete"))
change((7, "Ada L.", "Europe", "upsert"), (9, "Grace", "Africa", "upsert"))

# %% [markdown]
# The history of user 7: every change, with the row before it. All changes of a key are in one partition, and `_offset`
# is their order.

# %%
COLUMNS = "user_id BIGINT, name STRING, region STRING, _change_type STRING, _offset BIGINT, _timestamp TIMESTAMP"
changelog = spark.read.format("upsert-kafka").schema(COLUMNS).option("read.mode", "changelog")
of_the_user = Window.partitionBy("user_id").orderBy("_offset")
history = (
    changelog.options(**users)
    .load()
    .where("user_id = 7")
    .withColumn("region_before", f.lag("region").over(of_the_user))
    .withColumn("name_before", f.lag("name").over(of_the_user))
    .orderBy("_offset")
)
history.select("_change_type", "name_before", "name", "region_before", "region").show()

# %% [markdown]
# From now on, a stream prints each new change of user 7.

# %%
said: list[str] = []


def tell(changes: DataFrame, _: int) -> None:
    """Prints the changes of a micro-batch in order."""
    for row in changes.orderBy("_offset").collect():
        is_gone = row["_change_type"] == "delete"
        line = "user 7 is gone" if is_gone else f"user 7 is {row.name} in {row.region}"
        said.append(line)
        print(line)


stream = (
    spark.readStream.format("upsert-kafka")
    .schema(COLUMNS)
    .options(**users)
    .option("scan.startup.mode", "latest-offset")
    .load()
)
query = (
    stream.where("user_id = 7")
    .writeStream.foreachBatch(tell)
    .option("checkpointLocation", tempfile.mkdtemp(prefix="history_of_a_user-"))
    .start()
)
query.processAllAvailable()  # the stream has found the end of the topic, and continues there

# %%
change((7, "Ada L.", "Africa", "upsert"), (9, "Grace", "Asia", "upsert"))
change((7, None, None, "delete"))
query.processAllAvailable()

# %% [markdown]
# A stream runs until it is stopped.

# %%
query.stop()

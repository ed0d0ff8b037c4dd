"""The two sides of a comparison: the same job with this connector and with Spark's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

from data import METADATA, SCHEMA
from peers import PEERS
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamReader

from pyspark_upsert_kafka.kafka.local.jars import MAVEN_CENTRAL


@dataclass(frozen=True)
class Case:
    """A job and how its two sides do it.

    Args:
        name: Shown in the table.
        reads: Whether it reads a topic or writes one.
        streams: Whether it is a streaming query.
        format: Format of keys and values.
        mode: Our ``read.mode``.
        key: Whether Spark's side decodes the key too.
        metadata: Whether the topic has tombstones and the rows `METADATA`; then the whole query is timed, its
            start too.
        tuned: Whether Spark's sink has the settings of `TUNED` instead of its defaults.
        exactly_once: Whether both sides are `upsert_sink`, and the other one writes at least once.
        normalized_keys: Over how many keys are the changes that go through `normalize_changelog`; 0 = they do not.
    """

    name: str
    reads: bool
    streams: bool
    format: str = "json"
    mode: str = "append"
    key: bool = False
    metadata: bool = False
    tuned: bool = False
    exactly_once: bool = False
    normalized_keys: int = 0

    @property
    def peer(self) -> bool:
        """Whether Spark has functions for the format, and for the job."""
        return self.format in PEERS and not self.normalized_keys


def read_ours(
    case: Case, reader: DataFrameReader | DataStreamReader, options: dict[str, str]
) -> DataFrame:
    """A topic read by this connector; the options are those of the sink that filled it."""
    options = options | {"read.mode": case.mode}
    schema = ", ".join([SCHEMA, *([METADATA] if case.metadata else []), "_change_type STRING"])
    if case.mode == "append":
        # A key column is NOT NULL in the Avro schema of a table; without a key, only this says so.
        schema = SCHEMA.replace("id BIGINT", "id BIGINT NOT NULL")
        options = {k: v for k, v in options.items() if not k.startswith(("key.", "primary-key"))}
    return reader.format("upsert-kafka").schema(schema).options(**options).load()


def read_theirs(
    case: Case, reader: DataFrameReader | DataStreamReader, options: dict[str, str]
) -> DataFrame:
    """The same topic read by Spark's source and the format's functions."""
    source = {
        "subscribe": options["topic"],
        "kafka.bootstrap.servers": options["properties.bootstrap.servers"],
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
    }
    raw = reader.format("kafka").options(**source).load()
    peer = PEERS[case.format]
    value = peer.decode(f.col("value"), SCHEMA).alias("v")
    shown = ["offset", "partition", "timestamp"] if case.metadata else []
    if not case.key:
        return raw.select(value, *shown).select("v.*", *shown)
    keys = peer.decode(f.col("key"), "id BIGINT").alias("k")
    change = f.when(f.col("value").isNull(), "delete").otherwise("upsert").alias("_change_type")
    rest = [f"v.{column.split()[0]}" for column in SCHEMA.split(", ")[1:]]
    id_ = f.coalesce("v.id", "k.id").alias("id")
    return raw.select(keys, value, change, *shown).select(id_, *rest, *shown, "_change_type")


def written_theirs(case: Case, rows: DataFrame) -> DataFrame:
    """Keys and values for Spark's sink."""
    peer = PEERS[case.format]
    value = f.struct(*[f.col(name) for name in rows.columns])
    return rows.select(
        peer.encode(f.struct("id"), "id BIGINT").alias("key"),
        peer.encode(value, SCHEMA).alias("value"),
    )


TUNED = {"linger.ms": "20", "batch.size": "1000000", "acks": "all", "enable.idempotence": "true"}
"""Settings of the Java producer under which Spark's sink writes fastest and as safely as this one."""

ARROW = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
"""Without a limit, Spark does not add up the bytes of a batch again for each row that it hands to Python."""


def sink_options(
    ours: bool, servers: str, topic: str, format_: str = "json", **more: str
) -> tuple[str, dict[str, str]]:
    """Format and options of a sink."""
    if not ours:
        return "kafka", {"kafka.bootstrap.servers": servers, "topic": topic}
    return "upsert-kafka", {
        "properties.bootstrap.servers": servers,
        "topic": topic,
        "primary-key": "id",
        "key.format": format_,
        "value.format": format_,
        **more,
    }


_READ = Case("", reads=True, streams=False)
_WRITE = Case("", reads=False, streams=False)

CASES = (
    replace(_READ, name="read batch: every message (append) / from_json(value)"),
    replace(_READ, name="read batch: changelog / from_json(key), from_json(value)", mode="changelog", key=True),
    replace(_READ, name="read batch: changelog / from_json(value) only", mode="changelog"),
    replace(_READ, name="read stream: every message (append) / from_json(value)", streams=True),
    replace(_READ, name="read stream: changelog / from_json(value) only", streams=True, mode="changelog"),
    replace(_READ, name="read stream: normalize_changelog, 50,000 keys", streams=True, mode="changelog", normalized_keys=50_000),
    replace(_READ, name="read stream: normalize_changelog, 1,000,000 keys", streams=True, mode="changelog", normalized_keys=1_000_000),
    replace(_READ, name="debezium-json: read batch: upsert table / from_json(envelope)", format="debezium-json", mode="changelog"),
    replace(_WRITE, name="write batch / to_json + kafka sink"),
    replace(_WRITE, name="write batch / to_json + kafka sink, tuned", tuned=True),
    replace(_WRITE, name="write stream / to_json + kafka sink", streams=True),
    replace(_WRITE, name="write stream / to_json + kafka sink, tuned", streams=True, tuned=True),
    replace(_WRITE, name="avro: write batch / to_avro + kafka sink, tuned", format="avro", tuned=True),
    replace(_WRITE, name="avro: write stream / to_avro + kafka sink, tuned", format="avro", streams=True, tuned=True),
    replace(_WRITE, name="upsert_sink, 4 batches: exactly-once / at-least-once", streams=True, exactly_once=True),
)  # fmt: skip
"""The jobs of a table, in JSON, and writing in Avro."""

WHOLE_QUERIES = tuple(
    replace(
        _READ,
        name=f"{format_}: read {'stream' if streams else 'batch'} / from_{format_}{' of key and value' if key else ' of the value'}",
        format=format_,
        streams=streams,
        mode="changelog",
        key=key,
        metadata=True,
    )
    for format_, streams, key in product(("json", "avro"), (False, True), (True, False))
)
"""Reading topics with tombstones, with metadata columns, from ``load()`` to the end of the query."""

FORMATS = ("json", "csv", "avro", "avro-confluent", "protobuf")

MATRIX = tuple(
    replace(
        case,
        name=f"{format_}: {'read' if case.reads else 'write'} batch{PEERS[format_].name(case.reads) if format_ in PEERS else ''}",
        format=format_,
    )
    for format_, case in product(FORMATS, (_READ, _WRITE))
)
"""Every format in both directions."""


JARS = (
    "org/apache/spark/spark-sql-kafka-0-10_2.13/4.2.0/spark-sql-kafka-0-10_2.13-4.2.0.jar",
    # 4.2.0 of this one was never published; the connector needs it for delegation tokens only.
    "org/apache/spark/spark-token-provider-kafka-0-10_2.13/4.0.0/spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    "org/apache/kafka/kafka-clients/3.9.2/kafka-clients-3.9.2.jar",
    "org/apache/commons/commons-pool2/2.13.1/commons-pool2-2.13.1.jar",
    # The newest one on Maven Central; most of from_avro and to_avro is in Spark's own jars since 4.1.
    "org/apache/spark/spark-avro_2.13/4.1.1/spark-avro_2.13-4.1.1.jar",
    "org/scala-lang/modules/scala-parallel-collections_2.13/1.2.0/scala-parallel-collections_2.13-1.2.0.jar",
)
"""Spark's Kafka and Avro connectors and what they need beside Spark's own jars, on Maven Central."""


ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(*, unix_sockets: bool = True) -> SparkSession:
    """A session on two cores with Spark's Kafka and Avro connectors.

    Args:
        unix_sockets: Whether the JVM speaks with Python workers over Unix sockets, which is not Spark's default.
    """
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("upsert-kafka benchmark")
        .config("spark.jars", ",".join(f"{MAVEN_CENTRAL}{jar}" for jar in JARS))
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config(map=ARROW)
        .config("spark.python.unix.domain.socket.enabled", str(unix_sockets).lower())
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark

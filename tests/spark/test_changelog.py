"""`normalize_changelog` and `last_changes` on Spark: types, micro-batches, restarts, other checkpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as f

from pyspark_upsert_kafka import OptionError, SchemaError, last_changes, normalize_changelog
from pyspark_upsert_kafka.connector.changelog.changelog_columns import change_columns
from pyspark_upsert_kafka.connector.lakehouse.changes_by_key import changes_by_key
from pyspark_upsert_kafka.connector.lakehouse.merge_settings import merge_settings
from tests.conftest import Broker, options
from tests.spark.conftest import rows, run_to_end
from tests.spark.streams import Batches, message, read

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SCHEMA = "id BIGINT, name STRING, _partition INT, _offset BIGINT, _change_type STRING"

KEEPS_STATE = hasattr(GroupedData, "transformWithState")

keeps_state = pytest.mark.skipif(not KEEPS_STATE, reason="state needs PySpark 4.1")


@pytest.fixture(autouse=True)
def rocksdb(spark: SparkSession) -> Iterator[None]:
    """State in RocksDB, which Spark's state for Python needs."""
    spark.conf.set(PROVIDER, ROCKSDB)
    yield
    spark.conf.unset(PROVIDER)


class Files:
    """A changelog in files, each a micro-batch; the cheapest stream there is."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder, self._offset = spark, folder, 0
        folder.mkdir()

    def add(self, *changes: tuple[int, str | None] | dict[str, Any]) -> None:
        """A micro-batch of changes, all in partition 0; no name = a delete."""
        lines = []
        for change in changes:
            row = (
                change
                if isinstance(change, dict)
                else dict(zip(("id", "name"), change, strict=True))
            )
            kind = "delete" if row.get("name") is None else "upsert"
            of_message = {"_partition": 0, "_offset": self._offset, "_change_type": kind}
            lines.append(json.dumps({**of_message, **row}))
            self._offset += 1
        number = len(list(self._folder.iterdir()))
        file = self._folder / f"{number}.json"
        file.write_text("\n".join(lines))
        os.utime(file, (number, number))  # Spark takes the oldest first

    def stream(self, schema: str = SCHEMA) -> DataFrame:
        """The changes as a stream."""
        reader = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.json(str(self._folder))


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    """An empty changelog."""
    return Files(spark, tmp_path / "changelog")


def kinds(batches: Batches) -> dict[int, list[tuple[Any, ...]]]:
    """Kind, id and name of each batch's rows that has any."""
    return {
        number: [(row[4], row[0], row[1]) for row in found]
        for number, found in batches.rows.items()
        if found
    }


@keeps_state
def test_a_batch_that_fails_and_a_restart_change_nothing(files: Files, tmp_path: Path) -> None:
    """A micro-batch that runs again finds the rows as they were before it, in a new query too."""
    files.add((1, "a"), (2, "a"), (2, None))
    files.add((1, "b"), (2, "c"))
    files.add((1, "b"), (2, None), (3, None))
    sink = Batches(tmp_path / "checkpoint", fails={1, 2})

    for _ in range(2):
        with pytest.raises(Exception, match="fails as it was told to"):
            run_to_end(sink.start(normalize_changelog(files.stream(), ["id"])))
    run_to_end(sink.start(normalize_changelog(files.stream(), ["id"])))

    assert {number: sorted(made) for number, made in kinds(sink).items()} == {
        0: [("delete", 2, "a"), ("insert", 1, "a"), ("insert", 2, "a")],
        1: [("insert", 2, "c"), ("update_postimage", 1, "b"), ("update_preimage", 1, "a")],
        2: [("delete", 2, "c")],
    }


@pytest.mark.long("several runs of a query with state")
@keeps_state
def test_small_changes_of_many_rows(files: Files, tmp_path: Path) -> None:
    """They are kept beside the other rows: through failures, restarts, and when all is written as a whole again."""
    files.add(*((number, "a") for number in range(100)))
    files.add((1, "b"), (2, None), (100, "b"))
    files.add((1, None), (2, "c"), (100, "b"), (3, "c"))
    files.add(*((number, "d") for number in range(40)))
    files.add((1, "e"), (100, None))
    sink = Batches(tmp_path / "checkpoint", fails={1, 2, 3})

    for _ in range(3):
        with pytest.raises(Exception, match="fails as it was told to"):
            run_to_end(sink.start(normalize_changelog(files.stream(), ["id"], 1)))
    run_to_end(sink.start(normalize_changelog(files.stream(), ["id"], 1)))

    made = kinds(sink)
    assert sorted(made[1]) == [("delete", 2, "a"), ("insert", 100, "b"),
                               ("update_postimage", 1, "b"), ("update_preimage", 1, "a")]  # fmt: skip
    assert sorted(made[2]) == [("delete", 1, "b"), ("insert", 2, "c"),
                               ("update_postimage", 3, "c"), ("update_preimage", 3, "a")]  # fmt: skip
    assert [row for row in made[3] if row[1] in (1, 2, 3)] == [
        ("insert", 1, "d"), ("update_preimage", 2, "c"), ("update_postimage", 2, "d"),
        ("update_preimage", 3, "c"), ("update_postimage", 3, "d"),
    ]  # fmt: skip
    assert sorted(made[4]) == [
        ("delete", 100, "b"),
        ("update_postimage", 1, "e"),
        ("update_preimage", 1, "d"),
    ]


@pytest.mark.long("several runs of a query with state")
@keeps_state
def test_the_state_of_an_earlier_version(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had one value for each bucket, with all rows: a query goes on with it."""
    from pyspark_upsert_kafka.connector.changelog import buckets
    from pyspark_upsert_kafka.connector.changelog.buckets import packed, unpacked
    from pyspark_upsert_kafka.connector.changelog.row_images import normalized

    class Earlier(buckets.ChangeProcessor):
        def init(self, handle: Any) -> None:
            self._rows = handle.getValueState("last", "rows BINARY")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            changes = unpacked(*(row["rows"] for row in rows))
            none = changes.select(list(self._columns.row)).slice(0, 0)
            now = normalized(none, changes, self._columns)
            layout = self._layout.to_json().replace('"version": 3', '"version": 1')
            self._rows.update((packed(now.last.replace_schema_metadata({"layout": layout})),))
            return iter([buckets.Row(rows=packed(now.changes))])

    sink = Batches(tmp_path / "checkpoint")
    files.add(*((number, "a") for number in range(100)))
    with monkeypatch.context() as patch:
        patch.setattr(buckets, "ChangeProcessor", Earlier)
        run_to_end(sink.start(normalize_changelog(files.stream(), ["id"], 1)))

    files.add((1, "b"), (2, None))
    files.add((1, "c"), (2, "c"))
    run_to_end(sink.start(normalize_changelog(files.stream(), ["id"], 1)))

    made = kinds(sink)
    assert made[1] == [
        ("update_preimage", 1, "a"),
        ("update_postimage", 1, "b"),
        ("delete", 2, "a"),
    ]
    assert made[2] == [
        ("update_preimage", 1, "b"),
        ("update_postimage", 1, "c"),
        ("insert", 2, "c"),
    ]


@pytest.mark.long("several runs of a query with state")
@keeps_state
def test_columns_of_the_checkpoint(files: Files, tmp_path: Path) -> None:
    """A column may be added; one that is gone, or other buckets, are refused in the first micro-batch with any rows."""
    files.add((1, "a"))
    sink = Batches(tmp_path / "checkpoint")
    run_to_end(sink.start(normalize_changelog(files.stream(), ["id"], 4)))
    wider = SCHEMA.replace("name STRING", "name STRING, age DECIMAL(10, 2)")

    files.add({"id": 1, "name": "a", "age": 7})
    run_to_end(sink.start(normalize_changelog(files.stream(wider), ["id"], 4)))
    found = [(row[5], row[2] and str(row[2])) for row in sink.rows[1]]
    assert found == [("update_preimage", None), ("update_postimage", "7.00")]

    files.add((2, "another bucket"))
    for frame, buckets, message_ in (
        (files.stream(), 4, "column 'age' has the type decimal.* and now it is gone"),
        (files.stream(wider), 8, "the checkpoint has buckets=4, and this query has buckets=8"),
    ):
        with pytest.raises(Exception, match=f"CheckpointError: normalize_changelog: {message_}"):
            run_to_end(sink.start(normalize_changelog(frame, ["id"], buckets)))


@pytest.mark.long("several runs of a query with state")
@keeps_state
def test_null_structs_of_not_null_fields(files: Files, tmp_path: Path) -> None:
    """Spark's own columns have NULL under them; the rows are kept from micro-batch to micro-batch, nested ones too."""
    files.add((1, "a"), (2, "none"), (3, "none"))
    files.add((1, "none"), (2, "none"), (3, "c"))
    files.add((1, "b"), (2, None), (3, None))
    # A struct with a field that is NOT NULL, and NULL for some rows.
    part = f.when(f.col("name") != "none", f.struct(f.coalesce("name", f.lit("")).alias("c")))
    nested = f.when(f.col("id") < 3, f.struct(f.array(part), f.array(f.array(part)).alias("twice")))
    frame = files.stream().select(
        "*", part.alias("s"), f.array(part).alias("a"), f.create_map(f.lit("k"), part).alias("m"),
        nested.alias("n"), f.array(f.create_map(f.lit("k"), part)).alias("l"),
    )  # fmt: skip
    sink = Batches(tmp_path / "checkpoint")

    run_to_end(sink.start(normalize_changelog(frame, ["id"], 2)))

    a, b, c, none = ((held, [held], {"k": held}) for held in (("a",), ("b",), ("c",), None))
    assert {
        number: sorted((row[4], row[0], row[5:8]) for row in made)
        for number, made in sink.rows.items()
        if made
    } == {
        0: [("insert", 1, a), ("insert", 2, none), ("insert", 3, none)],
        1: [("update_postimage", 1, none), ("update_postimage", 3, c),
            ("update_preimage", 1, a), ("update_preimage", 3, none)],
        2: [("delete", 2, none), ("delete", 3, c),
            ("update_postimage", 1, b), ("update_preimage", 1, none)],
    }  # fmt: skip
    twice = {(row[0], row[5]): row[8:10] for made in sink.rows.values() for row in made}
    assert twice[1, None] == (([None], [[None]]), [{"k": None}])
    assert twice[3, ("c",)] == (None, [{"k": ("c",)}])


@pytest.mark.long("several runs of a query with state")
@pytest.mark.connect
@keeps_state
def test_a_topic_in_micro_batches(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Whole rows of a topic of two partitions, read in many micro-batches; applied, they are its snapshot."""
    topic = broker.topic(2)
    changes = (message(n % 37, None if n % 5 == 0 else f"v{n % 3}") for n in range(300))
    broker.produce(topic, *changes)
    stream = read(spark, broker, topic, SCHEMA, maxOffsetsPerTrigger=90)
    sink = Batches(tmp_path)
    run_to_end(sink.start(normalize_changelog(stream, ["id"], 4)))
    snapshot = read_table(spark, broker, topic)

    applied: dict[int, str] = {}
    for number in sorted(sink.rows):
        for id_, name, _, _, kind, _ in sink.rows[number]:
            if kind in ("update_preimage", "delete"):
                assert applied.pop(id_) == name
            else:
                assert id_ not in applied
                applied[id_] = name
    assert len(sink.rows) > 3
    assert applied == snapshot


def read_table(spark: SparkSession, broker: Broker, topic: str) -> dict[int, str]:
    """Names by id, as a batch read has them."""
    reader = spark.read.format("upsert-kafka").schema("id BIGINT, name STRING")
    return {row.id: row.name for row in reader.options(**options(broker, topic)).load().collect()}


TYPES = """
named_struct('at', TIMESTAMP '2026-01-01 12:00:00', 'list', array(1, NULL)) AS nested,
map('a', 1.5BD, 'b', NULL) AS map, parse_json('{"a": [1, "x"]}') AS variant,
CAST('12345678901234567890.123' AS DECIMAL(38, 3)) AS decimal, 9007199254740993 AS big,
CAST('NaN' AS DOUBLE) AS nan, X'00FF' AS bytes, DATE '2026-01-01' AS day, TIMESTAMP_NTZ '2026-01-01 12:00:00' AS ntz,
INTERVAL '1' DAY AS interval, CAST(NULL AS INT) AS nothing, CAST(NULL AS VOID) AS void
"""


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_rows_of_every_type_come_through_a_batch(spark: SparkSession, zone: str) -> None:
    """A batch is taken too; equal rows are equal in every type, and a delete shows the row as it was written."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        changes = spark.sql(
            f"""SELECT CAST(key AS DOUBLE) AS key, {TYPES}, _change_type, 0 AS _partition, _offset
            FROM VALUES ('NaN', 'upsert', 0L), ('-0.0', 'upsert', 1L), ('NaN', 'upsert', 2L),
                ('0.0', 'upsert', 3L), ('0.0', 'delete', 4L), (NULL, 'upsert', 5L)
                AS changes(key, _change_type, _offset)"""
        ).repartition(3)
        whole = normalize_changelog(changes, "key", 8).withColumn("variant", f.to_json("variant"))

        expected = changes.withColumn("variant", f.to_json("variant")).where(
            "_offset IN (0, 1, 3, 5)"
        )
        made = {3: ("delete", 4)}
        wanted = []
        for row in expected.collect():
            kind, offset = made.get(row["_offset"], ("insert", row["_offset"]))
            wanted.append(
                repr(tuple({**row.asDict(), "_change_type": kind, "_offset": offset}.values()))
            )
        assert sorted(repr(tuple(row)) for row in whole.collect()) == sorted(wanted)
        assert whole.schema == changes.withColumn("variant", f.to_json("variant")).schema
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_the_last_change_of_each_key(spark: SparkSession) -> None:
    """One row per key, deletes included, by partition and offset."""
    changes = spark.createDataFrame(
        [
            (1, "a", 0, 5, "upsert"),
            (1, "b", 0, 7, "upsert"),
            (1, "c", 0, 6, "upsert"),
            (2, "a", 1, 1, "upsert"),
            (2, None, 1, 2, "delete"),
            (None, "n", 1, 3, "upsert"),
        ],
        SCHEMA,
    ).repartition(3)

    assert rows(last_changes(changes, ["ID"])) == [
        (1, "b", 0, 7, "upsert"),
        (2, None, 1, 2, "delete"),
        (None, "n", 1, 3, "upsert"),
    ]
    assert last_changes(changes, "id").schema == changes.schema


def test_a_key_in_several_partitions(spark: SparkSession) -> None:
    """Their changes are ordered by timestamp, then by the partition; those of one partition by offset."""
    schema = "id BIGINT, name STRING, _partition INT, _offset BIGINT, _timestamp TIMESTAMP, _change_type STRING"
    at = [datetime(2026, 1, 1, 0, 0, second, tzinfo=timezone.utc) for second in range(4)]
    changes = [
        (1, "old", 2, 70, at[1], "upsert"),
        (1, "new", 0, 5, at[2], "upsert"),
        (2, None, 0, 6, at[2], "delete"),
        (2, "old", 1, 6, at[1], "upsert"),
        (3, "low", 0, 7, at[1], "upsert"),
        (3, "high", 1, 7, at[1], "upsert"),
        (4, "a", 0, 8, at[3], "upsert"),
        (4, "b", 0, 9, at[1], "upsert"),
        (4, "c", 1, 8, at[2], "upsert"),
        (5, "timeless", 1, 9, None, "upsert"),
        (5, "timed", 0, 10, at[0], "upsert"),
    ]
    batch = spark.createDataFrame(changes, schema)

    last = last_changes(batch, "id")
    assert sorted((row[0], row[1]) for row in last.collect()) == [
        (1, "new"), (2, None), (3, "high"), (4, "b"), (5, "timed"),
    ]  # fmt: skip
    normalized = normalize_changelog(batch, "id").where("_change_type = 'update_postimage'")
    assert (1, "new") in {(row[0], row[1]) for row in normalized.collect()}
    for deletes in ("hard", "soft"):
        settings = merge_settings(
            "t",
            primary_key="id",
            deletes=deletes,
            schema="fixed",
            unavailable=None,
            deleted_column="is_deleted",
        )
        columns = change_columns(batch.schema, "id", "merge_sink")
        merged = changes_by_key(batch, columns, settings, "_m", is_table=False).selectExpr(
            "id", "name", "_m.*"
        )
        shown = {row.id: (row.name, row.is_deleted) for row in merged.collect()}
        kept = (None, True) if deletes == "hard" else ("old", True)
        assert shown == {
            1: ("new", False), 2: kept, 3: ("high", False), 4: ("b", False), 5: ("timed", False),
        }  # fmt: skip
        assert all(row.places for row in merged.collect())


def test_columns_of_any_name(spark: SparkSession) -> None:
    """Dots, dashes, backticks and spaces are parts of names."""
    names = ["a.b", "c-d", "e`f", "g h", "1"]
    changes = [
        (1, "old", 1, 1, 1, 0, 5, "upsert"),
        (1, "new", 1, 1, 1, 0, 6, "upsert"),
        (2, "x", 1, 1, 1, 0, 7, "upsert"),
    ]
    batch = spark.createDataFrame(changes, [*names, "_partition", "_offset", "_change_type"])
    batch = batch.withColumn("_partition", f.col("_partition").cast("int"))

    for keys in (["a.b", "e`f"], ["c-d", "g h", "1"]):
        expected = 2 if "a.b" in keys else 3
        assert last_changes(batch, keys).count() == expected
        whole = normalize_changelog(batch, keys)
        assert whole.schema == batch.schema
        kinds = sorted(row[-1] for row in whole.collect())
        updates = ["update_postimage", "update_preimage"]
        assert kinds == (["insert", "insert", *updates] if expected == 2 else ["insert"] * 3)
        columns = change_columns(batch.schema, keys, "merge_sink")
        for deletes in ("hard", "soft"):
            settings = merge_settings(
                "t",
                primary_key=keys,
                deletes=deletes,
                schema="fixed",
                unavailable="x",
                deleted_column="is_deleted",
            )
            assert (
                changes_by_key(batch, columns, settings, "_m", is_table=False).count() == expected
            )


def test_an_upsert_beside_a_delete_in_one_message(spark: SparkSession) -> None:
    """A message of several changes may delete a key and give it to another row: the upsert counts."""
    changes = spark.createDataFrame(
        [(1, None, 0, 5, "delete"), (1, "b", 0, 5, "upsert"), (2, None, 0, 5, "delete")], SCHEMA
    )

    assert rows(last_changes(changes, "id")) == [
        (1, "b", 0, 5, "upsert"),
        (2, None, 0, 5, "delete"),
    ]


def test_what_is_refused_before_anything_runs(spark: SparkSession, files: Files) -> None:
    """Each mistake that can be seen in the program is told when the function is called."""
    stream = files.stream()
    with pytest.raises(SchemaError, match=r"last_changes takes a batch.*in a foreachBatch"):
        last_changes(stream, ["id"])
    with pytest.raises(SchemaError, match="normalize_changelog needs the column '_offset'"):
        normalize_changelog(stream.drop("_offset"), ["id"])
    for buckets in (0, 2**15 + 1, True, 1.5):
        with pytest.raises(OptionError, match="buckets must be 1 to 32768, and is"):
            normalize_changelog(stream, ["id"], buckets)  # type: ignore[arg-type]
    spark.conf.unset(PROVIDER)
    needs = r"in RocksDB.*spark.conf.set\('spark.*', '.*RocksDB" if KEEPS_STATE else "PySpark 4.1"
    with pytest.raises(OptionError, match=needs):
        normalize_changelog(stream, ["id"])


def test_a_change_that_is_neither_upsert_nor_delete(spark: SparkSession) -> None:
    """It is told with its place, and nothing is guessed."""
    changes = spark.sql("SELECT 1 AS id, 'insert' AS _change_type, 3 AS _partition, 8L AS _offset")

    with pytest.raises(Exception, match=r"SchemaError: .*partition 3, offset 8 is 'insert'"):
        normalize_changelog(changes, ["id"]).collect()
    with pytest.raises(Exception, match=r"SchemaError: .*partition 3, offset 8 is insert"):
        last_changes(changes, ["id"]).collect()


@pytest.mark.long("several runs of a query with state")
@keeps_state
def test_sums_go_down_and_survive_a_restart(
    spark: SparkSession, files: Files, tmp_path: Path
) -> None:
    """Signed counts on top of it, in update mode: with a failure between, they are those of the table as it is."""
    files.add((1, "Asia"), (2, "Asia"), (3, "Europe"))
    files.add((1, "Africa"), (3, None), (2, "Asia"))
    files.add((3, "Asia"), (1, "Asia"))
    sign = f.when(f.col("_change_type").isin("insert", "update_postimage"), 1).otherwise(-1)
    sink = Batches(tmp_path / "checkpoint", fails={1})

    def run() -> None:
        whole = normalize_changelog(files.stream(), ["id"], 4)
        counts = whole.groupBy("name").agg(f.sum(sign).alias("users"))
        writer = counts.writeStream.outputMode("update").foreachBatch(sink)
        writer = writer.option("checkpointLocation", str(sink.checkpoint))
        run_to_end(writer.trigger(availableNow=True).start())

    with pytest.raises(Exception, match="fails as it was told to"):
        run()
    run()

    found = {number: {(row[0], row[1]) for row in made} for number, made in sink.rows.items()}
    assert found == {
        0: {("Asia", 2), ("Europe", 1)},
        1: {("Asia", 1), ("Europe", 0), ("Africa", 1)},
        2: {("Asia", 3), ("Africa", 0)},
    }

"""JSON against Spark's own functions on the same rows."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.spark.batches import arrow_rows
from tests.unit.formats.json.codecs import decoder, encoder

DDL = (
    "id BIGINT, tiny TINYINT, small SMALLINT, n INT, name STRING, score DOUBLE, ratio FLOAT, "
    "price DECIMAL(38,10), active BOOLEAN, data BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, "
    "tags ARRAY<ARRAY<STRING>>, attributes MAP<STRING, MAP<STRING, BIGINT>>, "
    "deep STRUCT<a: STRUCT<b: ARRAY<STRUCT<c: STRUCT<d: DOUBLE>, e: STRING>>>, f: BOOLEAN>"
)
AT = dt.datetime(2024, 2, 29, 23, 59, 59, 123456)  # noqa: DTZ001 - Spark's rows have no zone
EARLY = dt.datetime(1899, 1, 1)  # noqa: DTZ001
VALUES = [
    (1, -1, -1, -1, "plain", 1.5, 0.1, Decimal("123.45"), True, b"\x00\xff", AT.date(), AT, AT,
     [["a", None], [], None], {"x": {"y": 1, "z": None}, "": None}, ((([((2.5,), "é")]),), True)),
    (2, 127, 32767, 2**31 - 1, 'q"\\/\n\t\u2028😀', -0.0, 3.4e38, Decimal("0E-10"), False, b"",
     dt.date(9999, 12, 31), EARLY, EARLY, [], {}, (([],), None)),
    (-(2**63), -128, -32768, -(2**31), "", 5e-324, 1e-45, Decimal("-" + "9" * 28 + "." + "9" * 10),
     True, b"x" * 100, dt.date(1, 1, 1), AT, AT, [[""]], {"é": {}}, ((None,), False)),
    (4, *[None] * 15),
]  # fmt: skip
WRITTEN_BY_SPARK = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}


@pytest.mark.parametrize("standard", ["SQL", "ISO-8601"])
def test_spark_reads_what_is_written(spark: SparkSession, standard: str) -> None:
    """Spark's from_json reads the same rows, of every type it has in common."""
    frame = spark.createDataFrame(VALUES, DDL).coalesce(1)
    written = encoder(frame.schema, timestamp_format_standard=standard).encode(arrow_rows(frame))

    texts = spark.createDataFrame([(message.decode(),) for message in written], "text STRING")
    read = texts.select(F.from_json("text", DDL).alias("row")).select("row.*")

    assert (
        arrow_rows(read.coalesce(1).sort("id")).to_pylist()
        == arrow_rows(frame.sort("id")).to_pylist()
    )


@pytest.mark.parametrize("nulls", ["true", "false"])
@pytest.mark.parametrize("copies", [1, 40])
def test_what_spark_writes_is_read(spark: SparkSession, nulls: str, copies: int) -> None:
    """What Spark's to_json writes reads as the same rows, by the row path and by the vectorised path."""
    frame = spark.createDataFrame(VALUES, DDL).coalesce(1)
    given = WRITTEN_BY_SPARK | {"ignoreNullFields": nulls}
    texts = frame.select(F.to_json(F.struct("*"), given)).collect()

    decoded = decoder(frame.schema, timestamp_format_standard="ISO-8601").decode(
        [row[0].encode() for row in texts] * copies
    )

    assert not decoded.errors
    assert decoded.rows.to_pylist() == arrow_rows(frame).to_pylist() * copies


def test_floats_that_are_no_numbers(spark: SparkSession) -> None:
    """NaN and the infinities are the same texts on both sides."""
    frame = spark.createDataFrame([(math.nan,), (math.inf,), (-math.inf,)], "x DOUBLE").coalesce(1)
    theirs = [row[0].encode() for row in frame.select(F.to_json(F.struct("*"))).collect()]

    assert encoder(frame.schema).encode(arrow_rows(frame)) == theirs
    assert repr(decoder(frame.schema).decode(theirs).rows.to_pydict()) == repr(
        arrow_rows(frame).to_pydict()
    )

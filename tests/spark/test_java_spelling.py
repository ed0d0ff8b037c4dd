"""Numbers as text, against the JVM that Spark brings: a hundred thousand in one call."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyspark_upsert_kafka.formats.text_columns import float_texts, java_texts

pytestmark = pytest.mark.classic("calls Java in the JVM of the driver")

COUNT = 100_000
BITS = {np.float64: np.uint64, np.float32: np.uint32}


def numbers(kind: Any) -> np.ndarray:
    """Random bits, each power of two and of ten with its neighbours, and amounts of money."""
    random = np.random.default_rng(20)
    bits = random.integers(0, np.iinfo(BITS[kind]).max, COUNT, BITS[kind]).view(kind)
    info = np.finfo(kind)
    twos = np.ldexp(kind(1), np.arange(info.minexp - info.nmant, info.maxexp))
    powers = range(-45, 39) if kind is np.float32 else range(-323, 309)
    tens = np.array([f"1e{power}" for power in powers], kind)
    money = (random.integers(-(10**9), 10**9, COUNT) / 100).astype(kind)
    tiny = np.arange(1, 500).astype(BITS[kind]).view(kind)
    round_ones = np.concatenate([twos, tens])
    near = [np.nextafter(round_ones, kind(side)) for side in (-np.inf, np.inf)]
    zeros = np.array([0.0, -0.0], kind)
    every = np.concatenate([bits, round_ones, *near, money, tiny, -tiny, zeros])
    return every[np.isfinite(every)]


def by_jackson(spark: SparkSession, java: str, texts: list[str]) -> list[str]:
    """Numbers as Jackson's writer of the shortest digits has them, which is Java's since 19."""
    jackson = spark._jvm.com.fasterxml.jackson
    mapper = jackson.databind.ObjectMapper()
    fast = jackson.core.StreamWriteFeature.USE_FAST_DOUBLE_WRITER.mappedFeature()
    array = mapper.readValue(f"[{','.join(texts)}]", spark._jvm.java.lang.Class.forName(java))
    written = getattr(mapper.writer(), "with")(fast).writeValueAsString(array)
    return str(written)[1:-1].split(",")


@pytest.mark.parametrize(("kind", "java"), [(np.float64, "[D"), (np.float32, "[F")])
def test_floats_are_spelled_as_by_java(spark: SparkSession, kind: Any, java: str) -> None:
    """FLOAT and DOUBLE have the digits and the layout of Java 19 and newer."""
    given = numbers(kind)
    ours = float_texts(pa.array(given)).to_list()

    theirs = by_jackson(spark, java, [repr(float(number)) for number in given])

    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.long("a hundred thousand numbers, once more")
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_floats_as_this_java_spells_them(spark: SparkSession, kind: Any) -> None:
    """This JVM's own toString differs only before Java 19: then it has more digits."""
    given = numbers(kind)
    ours = float_texts(pa.array(given)).to_list()

    frame = spark.createDataFrame(pa.table({"c": pa.array(given)})).selectExpr(
        "cast(c AS string) c"
    )
    theirs = frame.toArrow().column("c").to_pylist()

    other = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    old = int(str(spark._jvm.java.lang.Runtime.version().feature())) < 19
    assert old or not other
    assert all(len(mine) <= len(longer) for mine, longer in other)
    assert [kind(mine) for mine, _ in other] == [kind(longer) for _, longer in other]


@pytest.mark.parametrize("scale", [1, 2, 9, 18, 38])
def test_decimals_are_spelled_as_by_java(spark: SparkSession, scale: int) -> None:
    """DECIMAL in JSON is Java's stripTrailingZeros().toString(), as Jackson's tree has it."""
    random = np.random.default_rng(scale)
    whole = [int(n) * 10 ** int(m) for n, m in zip(
        random.integers(-(10**18), 10**18, 10_000), random.integers(0, 20, 10_000), strict=True
    )]  # fmt: skip
    given = pa.array([Decimal(n).scaleb(-scale) for n in whole], pa.decimal128(38, scale))
    ours = java_texts(given).to_list()

    jackson = spark._jvm.com.fasterxml.jackson.databind
    exact = jackson.DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS
    mapper = jackson.ObjectMapper().enable(exact)
    plain = ",".join(f"{number:f}" for number in given.to_pylist())
    # Not readTree, which py4j once called by the form for another type of argument.
    tree = spark._jvm.java.lang.Class.forName("com.fasterxml.jackson.databind.JsonNode")
    theirs = str(mapper.readValue(f"[{plain}]", tree).toString())[1:-1].split(",")

    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []

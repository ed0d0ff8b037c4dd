"""Cases of Debezium's envelopes in Avro, with a registry whose schemas fit or do not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.core.table.arrow import arrow_schema
from pyspark_upsert_kafka.formats.avro.derive import derived_schema
from tools.fuzz.case import Case, Table, written
from tools.fuzz.cdc_changes import Change, Image, Pools, keys_of
from tools.fuzz.cdc_codecs import columns_of_changes
from tools.fuzz.codecs import encoder_of
from tools.fuzz.confluent_cases import OTHERS, mutated
from tools.fuzz.mutations import share_of_bad, spoiled
from tools.fuzz.reading import encoded
from tools.fuzz.schemas import INTERVAL, SIMPLE, columns
from tools.fuzz.values import Values

_POOL = 40
_OPS = {"i": ("c", "r"), "u": ("u",), "d": ("d",)}


def case(format_: str, rng: Random, count: int) -> Case:
    """Messages of random changes, spoiled or not."""
    schema, pools = _pools(rng)
    envelope = StructType(
        [
            StructField("before", schema),
            StructField("after", schema),
            StructField("op", StringType()),
        ]
    )
    own = json.dumps(derived_schema(envelope, frozenset(), legacy_timestamps=True))
    options = {}
    if pools.keys is not None:
        options["key"] = json.dumps([schema.names[at] for at in pools.keys])
        options["reads-key"] = str(rng.random() < 0.3).lower()
    schemas = {0: own, 1: own, **OTHERS}
    table = Table(format_, columns_of_changes(schema), options=options, schemas=schemas)
    changes = [pools.change(rng) for _ in range(count)]
    ops = [rng.choice(_OPS[each.op]) for each in changes]
    encoder = encoder_of(Table("avro-confluent", envelope, schemas=schemas))
    messages = encoded(encoder, _envelopes(pools, changes, ops, arrow_schema(envelope)))
    messages, kept = spoiled(rng, messages, share_of_bad(rng), mutated)
    expected = pools.expected([pools.shown([each]) for each in changes], arrow_schema(table.schema))
    return written(table, messages, expected, kept)


def _pools(rng: Random) -> tuple[StructType, Pools]:
    others = columns(
        rng, (*SIMPLE, INTERVAL), depth=rng.choice([0, 1]), plain_names=True, nullable=True
    )
    key = StructField("the_key", rng.choice([LongType(), StringType(), IntegerType()]))
    schema = StructType([key, *others])
    keys = keys_of(rng, schema)
    chosen = frozenset(schema.names[at] for at in keys or [0])
    source = Values(
        rng, whole_millis=True, finite=True, nulls=rng.choice([0.0, 0.1]), negative_zero=False
    )
    values = source.batch(schema, _POOL, chosen).columns
    texts = [[repr(each).encode() for each in column.to_pylist()] for column in values]
    return schema, Pools(schema, values, texts, keys)


def _envelopes(
    pools: Pools, changes: Sequence[Change], ops: Sequence[str], target: pa.Schema
) -> pa.RecordBatch:
    before, after = (
        _structs(pools, images, target.field(at).type)
        for at, images in enumerate(
            [[each.before for each in changes], [each.after for each in changes]]
        )
    )
    return pa.RecordBatch.from_arrays([before, after, pa.array(ops, pa.string())], schema=target)


def _structs(pools: Pools, images: Sequence[Image | None], kind: pa.DataType) -> pa.StructArray:
    children = [
        values.take(
            pa.array([None if image is None else image[at] for image in images], pa.int64())
        )
        for at, values in enumerate(pools.values)
    ]
    mask = pa.array([image is None for image in images])
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)

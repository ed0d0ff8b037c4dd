"""Cases of Avro without a header: a given or a derived schema."""

from __future__ import annotations

import json
from random import Random

from pyspark_upsert_kafka.formats.avro.derive import derived_schema
from tools.fuzz.avro_peer import fastavro_peer
from tools.fuzz.case import Case, Table, written
from tools.fuzz.codecs import encoder_of
from tools.fuzz.mutations import share_of_bad, spoiled
from tools.fuzz.reading import writable
from tools.fuzz.schemas import INTERVAL, SIMPLE, columns
from tools.fuzz.values import Values


def case(rng: Random, count: int) -> Case:
    """Messages of random columns, spoiled or not."""
    given = rng.random() < 0.5
    schema = columns(
        rng,
        (*SIMPLE, INTERVAL),
        depth=rng.choice([0, 1, 2, 3]),
        plain_names=True,
        nullable=not given,
    )
    side = rng.choice(["key", "value"])
    required = frozenset(name for name in schema.names if side == "key" and rng.random() < 0.5)
    legacy = rng.random() < 0.5
    avro = derived_schema(schema, required, legacy_timestamps=legacy)
    options = {"timestamp_mapping.legacy": str(legacy).lower()}
    if given:
        options["schema"] = json.dumps(avro)
    table = Table("avro", schema, side, options, required=required)
    # Within arrays and maps there are milliseconds by either mapping.
    values = Values(rng, whole_millis=True, nulls=rng.choice([0.0, 0.1, 0.5]))
    rows = values.batch(schema, count, required)
    rows, messages = writable(encoder_of(table), rows)
    messages, kept = spoiled(rng, messages, share_of_bad(rng))
    return written(table, messages, rows, kept, peer=fastavro_peer(avro, schema))

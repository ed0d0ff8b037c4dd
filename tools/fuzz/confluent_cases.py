"""Cases of Avro with a registry and derived columns: prefixes, and schema ids that are unknown, are not schemas, or do not fit."""

from __future__ import annotations

import json
from random import Random

from pyspark_upsert_kafka.formats.avro.derive import derived_schema
from pyspark_upsert_kafka.registry.framing import prefix_of
from tools.fuzz.case import Case, Table, written
from tools.fuzz.codecs import encoder_of
from tools.fuzz.mutations import share_of_bad, spoiled
from tools.fuzz.reading import writable
from tools.fuzz.schemas import INTERVAL, SIMPLE, columns
from tools.fuzz.values import Values

OTHERS = {
    2: '"string"',
    3: "no schema",
    4: '{"type": "record", "name": "R", "fields": []}',
    5: '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}, {"name": "zz", "type": "string"}]}',
    6: '{"type": "array", "items": "long"}',
}


def case(rng: Random, count: int) -> Case:
    """Messages of the derived schema under two ids, and some under those of other schemas."""
    schema = columns(
        rng, (*SIMPLE, INTERVAL), depth=rng.choice([0, 1, 2]), plain_names=True, nullable=True
    )
    side = rng.choice(["key", "value"])
    required = frozenset(name for name in schema.names if side == "key" and rng.random() < 0.5)
    own = json.dumps(derived_schema(schema, required, legacy_timestamps=True))
    table = Table(
        "avro-confluent", schema, side, schemas={0: own, 1: own, **OTHERS}, required=required
    )
    values = Values(rng, whole_millis=True, nulls=rng.choice([0.0, 0.1, 0.5]))
    rows, messages = writable(encoder_of(table), values.batch(schema, count, required))
    messages = [prefix_of(rng.randrange(2)) + message[5:] for message in messages]
    messages, kept = spoiled(rng, messages, share_of_bad(rng), mutated)
    return written(table, messages, rows, kept)


def mutated(rng: Random, message: bytes) -> bytes:
    """A message with another prefix, or cut within it."""
    if rng.random() < 0.2:
        return message[: rng.randrange(7)]
    other = rng.choice([rng.randrange(8), 2**31 - 1, 2**24])
    return (
        rng.choice([prefix_of(other), prefix_of(other), b"\0\xff\0\0\1", b"\1\0\0\0\1", b"{", b""])
        + message[5:]
    )

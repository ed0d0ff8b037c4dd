"""Cases of CDC formats: changes as envelopes, in JSON and in Avro with a registry."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from pyspark_upsert_kafka.formats.avro.avro_columns import derived_schema
from tests.unit.formats.json.corpus import TOKENS
from tools.fuzz.avro_cases import OTHER_SCHEMAS, other_prefix
from tools.fuzz.case import Case, Table, share_of_bad, spoiled, written
from tools.fuzz.cdc_changes import Change, Image, Pools, keys_of
from tools.fuzz.codecs import columns_of_changes, encoder_of
from tools.fuzz.json_cases import mutated, respelled
from tools.fuzz.reading import encoded, writable
from tools.fuzz.values import INTERVAL, SIMPLE, Values, columns

_POOL = 40
"""So many values of each column; few, so that rows often have equal ones."""

_NULL = b"null"

_MEMBER = re.compile(rb'^\{"(?:[^"\\]|\\.)*":')
"""What stands before the value of a row's first column."""


@dataclass(frozen=True)
class Rows:
    """Rows as JSON.

    Args:
        names: The names of the columns, as JSON.
        pools: Their values.
    """

    names: Sequence[bytes]
    pools: Pools

    def text(self, image: Image | None, columns: Sequence[int] | None = None) -> bytes:
        """A row, or some columns of it; None = null."""
        if image is None:
            return _NULL
        chosen = range(len(image)) if columns is None else columns
        members = (self.names[at] + b":" + self.pools.texts[at][image[at]] for at in chosen)
        return b"{" + b",".join(members) + b"}"

    def changed(self, change: Change, columns: Sequence[int]) -> bytes:
        """What is sent of the row before an update of which only the changed columns are sent."""
        return self.text(change.before, columns)


def _debezium(rng: Random, rows: Rows, changes: Sequence[Change]) -> bytes:
    (change,) = changes
    op = rng.choice([b"c", b"r"]) if change.op == "i" else change.op.encode()
    members = [
        b'"before":' + rows.text(change.before),
        b'"after":' + rows.text(change.after),
        b'"op":"' + op + b'"',
        *_others(rng, ("ts_ms", "source", "transaction", "schema", "payload")),
    ]
    return _object(rng, members)


def _debezium_with_schema(rng: Random, rows: Rows, changes: Sequence[Change]) -> bytes:
    payload = _debezium(rng, rows, changes)
    schema = rng.choice(
        [_NULL, _NULL, b"{}", b'{"type":"struct","fields":[],"optional":false}', b"1"]
    )
    if rng.random() < 0.1:
        return b'{"payload":' + payload + b',"schema":' + schema + b"}"
    return b'{"schema":' + schema + b',"payload":' + payload + b"}"


def _ogg(rng: Random, rows: Rows, changes: Sequence[Change]) -> bytes:
    (change,) = changes
    members = [
        b'"before":' + rows.text(change.before),
        b'"after":' + rows.text(change.after),
        b'"op_type":"' + change.op.upper().encode() + b'"',
        *_others(rng, ("table", "current_ts", "op_ts", "primary_keys", "pos")),
    ]
    return _object(rng, members)


_MAXWELL = {"i": b"insert", "u": b"update", "d": b"delete"}
_CANAL = {"i": b"INSERT", "u": b"UPDATE", "d": b"DELETE"}


def _maxwell(rng: Random, rows: Rows, changes: Sequence[Change]) -> bytes:
    (change,) = changes
    sent = change.before if change.op == "d" else change.after
    members = [b'"data":' + rows.text(sent), b'"type":"' + _MAXWELL[change.op] + b'"']
    if change.op == "u":
        members.append(b'"old":' + rows.changed(change, _differing(change)))
    members += _others(rng, ("database", "table", "ts", "primary_key_columns", "xid"))
    return _object(rng, members)


def _canal(rng: Random, rows: Rows, changes: Sequence[Change]) -> bytes:
    op = changes[0].op if changes else "i"
    sent = [rows.text(each.before if op == "d" else each.after) for each in changes]
    members = [b'"data":[' + b",".join(sent) + b"]", b'"type":"' + _CANAL[op] + b'"']
    if op == "u":
        old = [rows.changed(each, _differing(each)) for each in changes]
        members.append(b'"old":[' + b",".join(old) + b"]")
    members += _others(rng, ("database", "table", "ts", "es", "pkNames", "sqlType", "isDdl"))
    return _object(rng, members)


def _differing(change: Change) -> list[int]:
    pairs = zip(change.before or (), change.after or (), strict=True)
    return [at for at, (old, new) in enumerate(pairs) if old != new]


_ODD: tuple[bytes, ...] = (
    _NULL, b"1700000000000", b"1", b'"a"', b"{}", b"[]", b'{"db":"d","ts_ms":5,"table":"t","schema":null}', b'["a",null]',
    b'{"a":1,"b":-5}', b'"2024-01-31 12:30:00.5"', b"9223372036854775807", b"1.5", b"true",
)  # fmt: skip


def _others(rng: Random, names: Sequence[str]) -> list[bytes]:
    """Fields that say nothing of a row."""
    return [
        json.dumps(name).encode() + b":" + rng.choice(_ODD) for name in names if rng.random() < 0.3
    ]


def _object(rng: Random, members: list[bytes]) -> bytes:
    if rng.random() < 0.2:
        rng.shuffle(members)
    return b"{" + b",".join(members) + b"}"


WRITERS: dict[str, Callable[[Random, Rows, Sequence[Change]], bytes]] = {
    "debezium-json": _debezium,
    "ogg-json": _ogg,
    "maxwell-json": _maxwell,
    "canal-json": _canal,
}
"""The formats in JSON that are fuzzed, and what writes a message of each."""


def case(format_: str, rng: Random, count: int) -> Case:
    """Messages of a CDC format in JSON."""
    schema = _columns(rng)
    pools = _pools(rng, schema)
    options = _options(rng, format_, pools)
    metadata = json.loads(options.get("metadata", "[]"))
    table = Table(
        format_,
        columns_of_changes(schema, metadata),
        options=options,
        required=_required(rng, pools),
    )
    rows = Rows([json.dumps(name).encode() for name in schema.names], pools)
    writer = WRITERS[format_]
    if options.get("schema-include") == "true":
        writer = _debezium_with_schema
    changes = [_changes(rng, pools, several=format_ == "canal-json") for _ in range(count)]
    messages = [writer(rng, rows, each) for each in changes]
    messages = [respelled(rng, each, schema) if rng.random() < 0.2 else each for each in messages]
    messages, kept = spoiled(rng, messages, share_of_bad(rng), _mutate)
    if metadata or table.required:
        return Case(table, messages)
    expected = pools.expected([pools.shown(each) for each in changes], arrow_schema(table.schema))
    return written(table, messages, expected, kept)


def _columns(rng: Random) -> StructType:
    """A column that may be the key, and others."""
    others = columns(
        rng, (*SIMPLE, INTERVAL), depth=rng.choice([0, 0, 1, 2]), maps=rng.random() < 0.3
    )
    key = StructField("the key", rng.choice([LongType(), StringType(), IntegerType()]))
    return StructType([key, *(StructField(each.name, each.dataType) for each in others)])


def _pools(rng: Random, schema: StructType) -> Pools:
    """Values of each column that can be written; those of keys are not NULL."""
    keys = keys_of(rng, schema)
    values, texts = [], []
    for at, field in enumerate(schema):
        is_key = at in (keys or [0])
        column = StructType([StructField(field.name, field.dataType, not is_key)])
        source = Values(rng, nulls=rng.choice([0.0, 0.2, 0.5]), negative_zero=not is_key)
        rows, messages = writable(encoder_of(Table("json", column)), source.batch(column, _POOL))
        values.append(rows.column(0))
        texts.append([_MEMBER.sub(b"", message)[:-1] for message in messages])
    return Pools(schema, values, texts, keys)


def _options(rng: Random, format_: str, pools: Pools) -> dict[str, str]:
    options = {}
    if pools.keys is not None:
        options["key"] = json.dumps([pools.schema.names[at] for at in pools.keys])
        options["reads-key"] = str(rng.random() < 0.3).lower()
    if rng.random() < 0.2:
        known = [key for key in CDC_FORMATS[format_] if key != "value.schema"]
        options["metadata"] = json.dumps(rng.sample(known, rng.randint(1, len(known))))
    if rng.random() < 0.3:
        options["ignore-parse-errors"] = "true"
    # Without schemas an interval is refused, whose unit is not known.
    needs_schemas = "interval" in pools.schema.simpleString()
    if format_ == "debezium-json" and (rng.random() < 0.3 or needs_schemas):
        options["schema-include"] = "true"
    return options


def _required(rng: Random, pools: Pools) -> frozenset[str]:
    """Columns that are NOT NULL."""
    wanted = rng.choice([0.0, 0.0, 0.0, 0.3])
    return frozenset(name for name in pools.schema.names if rng.random() < wanted)


def _changes(rng: Random, pools: Pools, *, several: bool) -> list[Change]:
    if not several:
        return [pools.change(rng)]
    first = pools.change(rng)
    count = rng.choice([0, 0, 0, 1, 2, 5])
    more = [pools.change(rng) for _ in range(count * 3)]
    return [first, *[each for each in more if each.op == first.op][:count]]


_ENVELOPES = (
    b"null", b"{}", b"[]", b"[null]", b"[{}]", b'"c"', b'"u"', b'"d"', b'"t"', b'"x"', b'"INSERT"', b'"update"', b'"I"',
    b'"ALTER"', b'"TRUNCATE"', b'"bootstrap-start"', b'"\\ud800"', b'{"the key":1}', b'{"the key":1,"the key":null}',
    b'[{"the key":1},null]',
)  # fmt: skip


def _mutate(rng: Random, message: bytes) -> bytes:
    """A message with one of its parts changed, or in another envelope."""
    how = rng.randrange(10)
    fields = (
        b"before",
        b"after",
        b"op",
        b"data",
        b"old",
        b"type",
        b"op_type",
        b"source",
        b"payload",
        b"schema",
    )
    name = b'"' + rng.choice(fields) + b'":'
    if how < 2:
        value = rng.choice([*_ENVELOPES, *TOKENS])
        return message[:-1] + b"," + name + value + b"}"
    if how < 4:
        value = rng.choice([*_ENVELOPES, *TOKENS])
        return b"{" + name + value + b"," + message[1:]
    if how == 4:
        return message.replace(name, b'"' + rng.choice(fields) + b'":', 1)
    if how == 5:
        return (
            b'{"schema":'
            + rng.choice([b"null", b"{}", b"[]", b"1"])
            + b',"payload":'
            + message
            + b"}"
        )
    if how == 6:
        around = rng.choice([b"", b" ", b"\n", b"\xef\xbb\xbf", b"\0", b"\x0b"])
        return around + message + rng.choice([b"", b" ", b"\n", b"\r\n", b"}", message])
    return mutated(rng, message)


_POOL_IN_AVRO = 40
_OPS = {"i": ("c", "r"), "u": ("u",), "d": ("d",)}


def case_in_avro(format_: str, rng: Random, count: int) -> Case:
    """Messages of random changes, spoiled or not."""
    schema, pools = _pools_in_avro(rng)
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
    schemas = {0: own, 1: own, **OTHER_SCHEMAS}
    table = Table(format_, columns_of_changes(schema), options=options, schemas=schemas)
    changes = [pools.change(rng) for _ in range(count)]
    ops = [rng.choice(_OPS[each.op]) for each in changes]
    encoder = encoder_of(Table("avro-confluent", envelope, schemas=schemas))
    messages = encoded(encoder, _envelopes(pools, changes, ops, arrow_schema(envelope)))
    messages, kept = spoiled(rng, messages, share_of_bad(rng), other_prefix)
    expected = pools.expected([pools.shown([each]) for each in changes], arrow_schema(table.schema))
    return written(table, messages, expected, kept)


def _pools_in_avro(rng: Random) -> tuple[StructType, Pools]:
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
    values = source.batch(schema, _POOL_IN_AVRO, chosen).columns
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

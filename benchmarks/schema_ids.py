"""What it costs to read messages by the ids of their schemas: those of Confluent's registry beside those of AWS Glue.

A line for each format, in ns of CPU time per message, the least of some runs in turn: messages of one schema and of three, then
those that zlib has compressed. Registries are not asked. `make bench-schema-ids` runs it, and read_ids.py.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from uuid import UUID

import pyarrow as pa
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.formats import avro_confluent, json_registry, proto_registry
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder
from pyspark_upsert_kafka.formats.registry_format import RegisteredSchema, RegistryFormat
from pyspark_upsert_kafka.registry.framing import decoder_by_id, id_bytes
from pyspark_upsert_kafka.registry.glue_framing import decoder_by_version, header_of

_MESSAGES, _TIMES = 100_000, 40
_COLUMNS = StructType(
    [
        StructField("id", LongType(), False),
        StructField("name", StringType()),
        StructField("amount", DoubleType()),
        StructField("n", IntegerType()),
    ]
)
_TARGET = arrow_schema(_COLUMNS)
_FORMATS = (
    (avro_confluent.FORMAT, avro_confluent.AVRO_GLUE),
    (json_registry.FORMAT, json_registry.JSON_GLUE),
    (proto_registry.FORMAT, proto_registry.PROTOBUF_GLUE),
)


def main() -> None:
    """Prints the table."""
    print(f"{'format':<14} {'schemas':<10} {'Confluent':>10} {'Glue':>10}   ns a message")
    for confluent, glue in _FORMATS:
        ids = [id_bytes(number) for number in (7, 8, 9)]
        versions = [header_of(UUID(int=number << 100 | number)) for number in (7, 8, 9)]
        by_id, by_version = _decoder_by_id(confluent), _decoder_by_version(glue)
        for label, count in (("one", 1), ("three", 3)):
            ours = _alternating(confluent, ids[:count])
            theirs = _alternating(glue, versions[:count])
            times = _in_turn(lambda: by_id.decode(ours()), lambda: by_version.decode(theirs()))  # noqa: B023
            print(f"{glue.name:<14} {label:<10} {times[0]:>10.0f} {times[1]:>10.0f}")
        packed = _compressed(glue)
        [spent] = _in_turn(lambda: by_version.decode(packed()))  # noqa: B023
        print(f"{glue.name:<14} {'one, zlib':<10} {'':>10} {spent:>10.0f}")


def _spec(format_: RegistryFormat) -> CodecSpec:
    options = {option.name: option.default for option in format_.options}
    return CodecSpec(_COLUMNS, "value", options, ("t",), frozenset({"id"}))


def _decoder_by_id(format_: RegistryFormat) -> Decoder:
    of_schema, schema = format_.decoder(_spec(format_), None), _schema(format_)
    return decoder_by_id(lambda _: of_schema(schema, 5), _TARGET)


def _decoder_by_version(format_: RegistryFormat) -> Decoder:
    of_schema, schema = format_.decoder(_spec(format_), None), _schema(format_)
    return decoder_by_version(lambda _, length: of_schema(schema, length), _TARGET)


def _schema(format_: RegistryFormat) -> RegisteredSchema:
    text = format_.encoder(_spec(format_), None).schema
    return RegisteredSchema("The schema", format_.schema_type, text)


def _messages(format_: RegistryFormat, prefix: bytes) -> list[bytes]:
    rows = [
        {"id": number, "name": f"name {number}", "amount": number / 7, "n": number % 9}
        for number in range(_MESSAGES)
    ]
    writing = format_.encoder(_spec(format_), None)
    encoder = writing.with_prefix(prefix + writing.after_id)
    found: list[bytes] = encoder.encode(
        pa.RecordBatch.from_pylist(rows, schema=_TARGET)
    ).to_pylist()
    return found


def _alternating(format_: RegistryFormat, prefixes: list[bytes]) -> Callable[[], BytesColumn]:
    """Gives messages, each behind another one of the prefixes, as a column that nobody has looked at."""
    each = [_messages(format_, prefix) for prefix in prefixes]
    column = pa.array([each[at % len(each)][at] for at in range(_MESSAGES)], pa.large_binary())
    return lambda: BytesColumn(column)


def _compressed(format_: RegistryFormat) -> Callable[[], BytesColumn]:
    header = header_of(UUID(int=7), compressed=True)
    messages = [header + zlib.compress(message) for message in _messages(format_, b"")]
    column = pa.array(messages, pa.large_binary())
    return lambda: BytesColumn(column)


def _in_turn(*jobs: Callable[[], object]) -> list[float]:
    """The least of each, in ns a message: what else the machine does only adds to it."""
    spent: list[list[float]] = [[] for _ in jobs]
    for _ in range(_TIMES):
        for job, times in zip(jobs, spent, strict=True):
            began = time.process_time()
            job()
            times.append((time.process_time() - began) * 1e9 / _MESSAGES)
    return [min(times) for times in spent]


if __name__ == "__main__":
    main()

"""Avro messages of Kafka Connect, whose schemas in the registry say by ``connect.name`` what values mean."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from pyspark_upsert_kafka.formats import avro_confluent
from pyspark_upsert_kafka.formats.avro.decoding import datum_decoder, resolve_columns
from pyspark_upsert_kafka.formats.avro.model import Schema
from pyspark_upsert_kafka.formats.avro.schema import parse_schema
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder
from pyspark_upsert_kafka.formats.registry_format import RegisteredSchema, SchemaDecoder

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.debezium_types.mapping import RowMapping


def decoder(spec: CodecSpec, given: RegisteredSchema | None, prefix_length: int) -> SchemaDecoder:
    """What reads one side, as ``avro-confluent`` does, but for the fields that have a semantic type.

    Raises:
        SchemaError: The given schema is wrong, or Avro cannot carry a column.
    """
    reader = None if given is None else parse_schema(given.text, given.origin)
    if given is None or reader is None:
        # JSON in a text may become a VARIANT, which Avro has no type for.
        columns = replace(spec, schema=_texts_for_variants(spec.schema))
        avro_confluent.decoder(columns, None, prefix_length)
    else:
        resolve_columns(reader, _mapping(given.text, spec.schema, None).physical)

    def of_schema(registered: RegisteredSchema) -> Decoder:
        from pyspark_upsert_kafka.formats.debezium_types.by_schema import MappedDecoder

        text = avro_confluent.whole_text(registered)
        writer = parse_schema(text, registered.origin)
        mapping = _mapping(text, spec.schema, reader)
        plain = datum_decoder(writer, mapping.physical, reader=reader, prefix_length=prefix_length)
        return MappedDecoder(plain, mapping)

    return of_schema


def _mapping(text: str, columns: StructType, reader: Schema | None) -> RowMapping:
    """What becomes of messages that are written with the schema of this text. Raises SchemaError."""
    from pyspark_upsert_kafka.formats.debezium_types.avro_columns import named_as_columns
    from pyspark_upsert_kafka.formats.debezium_types.avro_schema import connect_schema_of_avro
    from pyspark_upsert_kafka.formats.debezium_types.mapping import row_mapping

    schema = connect_schema_of_avro(json.loads(text))
    return row_mapping(named_as_columns(schema, columns, reader), columns, lenient=False)


def _texts_for_variants(columns: StructType) -> StructType:
    return StructType(
        [StructField(each.name, _text_for(each.dataType), each.nullable) for each in columns]
    )


def _text_for(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return _texts_for_variants(kind)
    if isinstance(kind, ArrayType):
        return ArrayType(_text_for(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _text_for(kind.valueType), kind.valueContainsNull)
    return StringType() if isinstance(kind, VariantType) else kind

"""``debezium-avro-confluent``: Debezium's envelopes in Avro whose messages name their schema, as Flink's format of this name reads them.

Beyond Flink, Debezium's types and Kafka Connect's become the table's, also in keys of Avro: schemas in the registry say by
``connect.name`` what values mean. Confluent's and Apicurio's converters write a Connect schema in properties that begin with
``connect.``. Source: ``io.confluent.connect.avro.AvroData``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from pyspark_upsert_kafka.core.errors import SchemaError, shown_names
from pyspark_upsert_kafka.formats import avro_confluent
from pyspark_upsert_kafka.formats.avro.avro_columns import NamesInSchema, columns_of
from pyspark_upsert_kafka.formats.avro.avro_decoder import datum_decoder, resolve_columns
from pyspark_upsert_kafka.formats.avro.avro_schema import parse_schema
from pyspark_upsert_kafka.formats.avro.avro_types import (
    NO_DEFAULT,
    PRIMITIVES,
    Array,
    AvroType,
    Map,
    Record,
    Reference,
    Schema,
    Union,
)
from pyspark_upsert_kafka.formats.cdc.connect_schema import ConnectSchema, texts
from pyspark_upsert_kafka.formats.cdc.debezium_json import DEBEZIUM
from pyspark_upsert_kafka.formats.cdc.envelope_format import refuse, row_after, row_before
from pyspark_upsert_kafka.formats.codec import ChangeDecoder, ChangeSpec, CodecSpec, Decoder, Format
from pyspark_upsert_kafka.formats.registry_format import (
    LackedColumns,
    RegisteredSchema,
    SchemaDecoder,
    SeenRecords,
    of_newest_schema,
)

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.cdc.columns_by_schema import RowMapping

_NAME = "debezium-avro-confluent"


def _envelope_spec(spec: ChangeSpec) -> CodecSpec:
    fields = [
        StructField("before", row_before(spec)),
        StructField("after", row_after(spec)),
        *DEBEZIUM.columns(),
    ]
    return replace(spec.value, schema=StructType(fields), required=frozenset())


def _changes(envelopes: Format, spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError or OptionError as that of ``avro-confluent`` does."""
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import EnvelopeDecoder
    from pyspark_upsert_kafka.formats.cdc.row_changes import read_before_after

    decoded = envelopes.decoder(_envelope_spec(spec))
    return EnvelopeDecoder(spec, decoded, DEBEZIUM, read_before_after(DEBEZIUM))


def _check(envelopes: Format, row: CodecSpec) -> None:
    """Raises what compiling the decoder of envelopes around such rows raises."""
    envelopes.decoder(_envelope_spec(ChangeSpec(row, is_keyed=False)))


def _newest_schema(envelopes: Format, row: CodecSpec) -> str:
    """The subject of the newest schema; raises as that of ``avro-confluent`` does."""
    if envelopes.newest_schema is None:
        raise ValueError("The format of envelopes has a registry.")
    return envelopes.newest_schema(_envelope_spec(ChangeSpec(row, is_keyed=False)))


def _completed(envelopes: Format) -> Format:
    """The format, from one that reads its envelopes as rows with a registry."""
    return Format(
        _NAME,
        envelopes.options,
        refuse,
        refuse,
        columns=envelopes.columns,
        check_decoder=partial(_check, envelopes),
        newest_schema=partial(_newest_schema, envelopes),
        with_schema_ids=envelopes.with_schema_ids,
        changes=partial(_changes, envelopes),
        record_types=envelopes.record_types,
    )


_TYPES = {
    "int": "int32",
    "long": "int64",
    "fixed": "bytes",
    "enum": "string",
    "record": "struct",
    "error": "struct",
}
_NULLS = ("null", {"type": "null"})
_UNKNOWN = ConnectSchema("unknown")
_SHAPES = {"struct": Record, "array": Array, "map": Map}


def decoder(spec: CodecSpec, given: RegisteredSchema | None) -> SchemaDecoder:
    """What reads one side, as ``avro-confluent`` does, but for the fields that have a semantic type.

    Raises:
        SchemaError: The given schema is wrong, or Avro cannot carry a column.
    """
    reader = None if given is None else parse_schema(given.text, given.origin)
    if given is None or reader is None:
        # JSON in a text may become a VARIANT, which Avro has no type for.
        columns = replace(spec, schema=_texts_for_variants(spec.schema))
        avro_confluent.decoder(columns, None)
    else:
        resolve_columns(reader, _mapping(given.text, spec.schema, None).physical)

    seen, lacked = SeenRecords(spec), LackedColumns(_of_row(spec), str.lower)

    def of_schema(registered: RegisteredSchema, prefix_length: int) -> Decoder:
        from pyspark_upsert_kafka.formats.cdc.columns_by_schema import MappedDecoder

        text = avro_confluent.whole_text(registered)
        writer = parse_schema(text, registered.origin)
        seen.add(*avro_confluent.record_names(writer))
        seen_by = reader or writer
        if (row := _row_of(seen_by)) is not None:
            of_row = replace(seen_by, type=row)
            avro_confluent.look_at_fields(lacked, given or registered, of_row)
        mapping = _mapping(text, spec.schema, reader)
        plain = datum_decoder(writer, mapping.physical, reader=reader, prefix_length=prefix_length)
        return MappedDecoder(plain, mapping)

    return of_schema


def _of_row(spec: CodecSpec) -> CodecSpec:
    """The side with the columns of the row, where these are in an envelope."""
    columns = spec.schema
    after = columns[DEBEZIUM.after].dataType if DEBEZIUM.after in columns.names else None
    return replace(spec, schema=after) if isinstance(after, StructType) else spec


def _row_of(writer: Schema) -> Record | None:
    """The record of the row in an envelope; None = there is none."""
    envelope = writer.type
    fields = envelope.fields if isinstance(envelope, Record) else ()
    after = next((field.type for field in fields if field.name == DEBEZIUM.after), None)
    branches = after.branches if isinstance(after, Union) else (after,)
    found = (writer.records[e.name] if isinstance(e, Reference) else e for e in branches)
    return next((each for each in found if isinstance(each, Record)), None)


def columns(registered: RegisteredSchema, spec: CodecSpec, only: str | None) -> StructType:
    """The columns that an Avro schema gives, those of a semantic type as what they mean.

    Raises:
        SchemaError: It is wrong, or Spark has no type for a field.
    """
    found, with_default = _meant_columns(registered, only)
    return found if registered.given else of_newest_schema(found, with_default, spec.required)


def columns_of_row(registered: RegisteredSchema, spec: CodecSpec, _: str | None) -> StructType:
    """The same of the rows in envelopes.

    Raises:
        SchemaError: The schema is wrong, or that of no envelope, or Spark has no type for a field.
    """
    envelope, _defaults = _meant_columns(registered, None)
    row = envelope[DEBEZIUM.after].dataType if DEBEZIUM.after in envelope.names else None
    if not isinstance(row, StructType):
        raise SchemaError(
            f"{registered.origin} gives no columns: it is no envelope of Debezium, which has a record {DEBEZIUM.after!r}. It has the "
            f"fields {shown_names(envelope.names)}. Rows that the connector has unwrapped (ExtractNewRecordState) are read by "
            "'value.format' = 'avro-confluent'."
        )
    # What a column of the database may have gained is not said: it has a default, or may be NULL.
    return row if registered.given else of_newest_schema(row, row.names, spec.required)


def _meant_columns(registered: RegisteredSchema, only: str | None) -> tuple[StructType, list[str]]:
    """The columns, and the names of those that have a default."""
    text = avro_confluent.whole_text(registered)
    parsed = parse_schema(text, registered.origin)
    plain, meant = columns_of(parsed, only), connect_schema_of_avro(json.loads(text))
    if not isinstance(parsed.type, Record):
        return StructType(
            [StructField(e.name, _meant(e.dataType, meant), e.nullable) for e in plain]
        ), []
    with_default = [each.name for each in parsed.type.fields if each.default is not NO_DEFAULT]
    return _meant_fields(plain, meant), with_default


def _meant_fields(plain: StructType, schema: ConnectSchema) -> StructType:
    return StructType(
        [
            StructField(
                each.name, _meant(each.dataType, schema.fields.get(each.name)), each.nullable
            )
            for each in plain
        ]
    )


def _meant(plain: DataType, schema: ConnectSchema | None) -> DataType:
    from pyspark_upsert_kafka.formats.cdc.semantic_types import (
        default_type,
        semantic_type,
    )

    known = None if schema is None else semantic_type(schema)
    if schema is not None and known and known.column:
        return default_type(schema)
    if schema is not None and isinstance(plain, StructType):
        return _meant_fields(plain, schema)
    items = None if schema is None else schema.items
    if isinstance(plain, ArrayType):
        return ArrayType(_meant(plain.elementType, items), plain.containsNull)
    if isinstance(plain, MapType):
        return MapType(plain.keyType, _meant(plain.valueType, items), plain.valueContainsNull)
    return plain


def _mapping(text: str, columns: StructType, reader: Schema | None) -> RowMapping:
    """What becomes of messages that are written with the schema of this text. Raises SchemaError."""
    from pyspark_upsert_kafka.formats.cdc.columns_by_schema import row_mapping

    schema = connect_schema_of_avro(json.loads(text))
    return row_mapping(_named_as_columns(schema, columns, reader), columns, lenient=False)


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


def _named_as_columns(
    schema: ConnectSchema, columns: StructType, reader: Schema | None
) -> ConnectSchema:
    """The schema of a record, with its fields under the names of the columns, as Avro finds the field of a column.

    Args:
        schema: What the messages are written with. One that is no record is that of the only column.
        columns: The columns.
        reader: The reader's schema, whose fields may have other names, with aliases; None = there is none.
    """
    if schema.type != "struct" and len(columns) == 1:
        return ConnectSchema("struct", fields={columns.names[0]: schema})
    if reader is None:
        return _named(schema, columns, None, {})
    return _named(schema, columns, reader.type, reader.records)


def _named(
    schema: ConnectSchema,
    wanted: DataType,
    reader: AvroType | None,
    records: Mapping[str, Record],
) -> ConnectSchema:
    seen = _of_shape(reader, schema.type, records)
    if isinstance(wanted, StructType) and schema.type == "struct":
        fields = {}
        of_column = _fields(wanted.names, schema, seen)
        for column in wanted.fields:
            name, of_reader = of_column(column.name)
            if name is not None:
                part = schema.fields[name]
                fields[column.name] = _named(part, column.dataType, of_reader, records)
        return replace(schema, fields=fields)
    if isinstance(wanted, ArrayType | MapType) and schema.items is not None:
        inner = wanted.elementType if isinstance(wanted, ArrayType) else wanted.valueType
        return replace(schema, items=_named(schema.items, inner, _items(seen), records))
    return schema


def _of_shape(reader: AvroType | None, kind: str, records: Mapping[str, Record]) -> AvroType | None:
    """The record, array or map that the reader takes; None = it takes none."""
    branches = reader.branches if isinstance(reader, Union) else (reader,)
    found = (records[each.name] if isinstance(each, Reference) else each for each in branches)
    shape = _SHAPES.get(kind)
    return None if shape is None else next((e for e in found if isinstance(e, shape)), None)


def _items(reader: AvroType | None) -> AvroType | None:
    if isinstance(reader, Array):
        return reader.items
    return reader.values if isinstance(reader, Map) else None


def _fields(
    columns: Collection[str], schema: ConnectSchema, reader: AvroType | None
) -> Callable[[str], tuple[str | None, AvroType | None]]:
    """From a column to the name of its field in the schema, None = it has none; and the type that the reader takes it as."""
    if not isinstance(reader, Record):
        of_schema = NamesInSchema(schema.fields, columns)
        return lambda column: (of_schema.of(column), None)
    of_reader = {field.name: field for field in reader.fields}
    names = NamesInSchema(of_reader, columns)

    def field(column: str) -> tuple[str | None, AvroType | None]:
        name = names.of(column)
        if name is None:
            return None, None
        found = of_reader[name]
        written = (n for n in (found.name, *found.aliases) if n in schema.fields)
        return next(written, None), found.type

    return field


def connect_schema_of_avro(declared: Any) -> ConnectSchema:
    """The Connect schema that an Avro schema stands for.

    What no Connect schema has, such as a union of several types, is of type ``unknown``, and so is a record within
    itself: they have no semantic type. A named type that says nothing of Connect has its own name, as in the converter.

    Args:
        declared: The JSON of a valid Avro schema.
    """
    return _AvroSchemas().schema(declared, "")


class _AvroSchemas:
    """The schemas of named types, which stand in the text once and are named after that."""

    def __init__(self) -> None:
        self.known: dict[str, ConnectSchema] = {}

    def schema(self, declared: Any, space: str) -> ConnectSchema:
        if isinstance(declared, list):
            return self._union(declared, space)
        if isinstance(declared, str):
            return self._named(declared, space)
        if isinstance(declared["type"], list | dict):
            return self.schema(declared["type"], space)
        if declared["type"] in ("record", "error", "enum", "fixed"):
            return self._definition(declared, space)
        return self._plain(declared, space)

    def _union(self, branches: list[Any], space: str) -> ConnectSchema:
        others = [branch for branch in branches if branch not in _NULLS]
        if len(others) != 1:
            return _UNKNOWN
        return replace(self.schema(others[0], space), optional=len(branches) > 1)

    def _named(self, name: str, space: str) -> ConnectSchema:
        full = name if "." in name or not space else f"{space}.{name}"
        known = self.known.get(full) or self.known.get(name)
        return known or ConnectSchema(_TYPES.get(name, name))

    def _definition(self, declared: Mapping[str, Any], space: str) -> ConnectSchema:
        name = declared["name"]
        space = name.rpartition(".")[0] if "." in name else declared.get("namespace", space)
        full = f"{space}.{name.rpartition('.')[2]}" if space else name
        self.known[full] = _UNKNOWN
        fields = {
            field["name"]: self.schema(field["type"], space) for field in declared.get("fields", [])
        }
        self.known[full] = _schema(declared, full, fields=fields)
        return self.known[full]

    def _plain(self, declared: Mapping[str, Any], space: str) -> ConnectSchema:
        if declared["type"] == "array":
            return _schema(declared, items=self.schema(declared["items"], space))
        if declared["type"] == "map":
            values = self.schema(declared["values"], space)
            return _schema(declared, items=values, keys=ConnectSchema("string"))
        if declared["type"] in PRIMITIVES:
            return _schema(declared)
        return self._named(declared["type"], space)


def _schema(
    declared: Mapping[str, Any], full_name: str | None = None, **parts: Any
) -> ConnectSchema:
    kind, name = declared.get("connect.type"), declared.get("connect.name")
    return ConnectSchema(
        kind if isinstance(kind, str) else _TYPES.get(declared["type"], declared["type"]),
        name if isinstance(name, str) else full_name,
        texts(declared.get("connect.parameters")),
        **parts,
    )


KEYS, REGISTRY_KEYS = (
    replace(format_, decoder=decoder, columns=columns)
    for format_ in (avro_confluent.FORMAT, avro_confluent.AVRO_REGISTRY)
)
"""Keys of Avro beside Debezium's values, under both names of their format."""

FORMAT = replace(
    KEYS,
    name=_NAME,
    encoder=partial(avro_confluent.encoder, _NAME),
    columns=columns_of_row,
    complete=_completed,
)

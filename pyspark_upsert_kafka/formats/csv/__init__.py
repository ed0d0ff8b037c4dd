"""CSV, as Flink's ``csv`` format reads and writes it: one record per message.

What compiles and runs the codecs is imported by the tasks that use them, not where a query is planned.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.csv.dialect import OPTIONS, Dialect, dialect_of
from pyspark_upsert_kafka.formats.leaf_types import TEXT_TYPES


def check(spec: CodecSpec) -> Dialect:
    """The dialect of one side that can be read and written.

    Raises:
        SchemaError: CSV cannot carry a column.
        OptionError: Two options contradict each other.
    """
    dialect = dialect_of(spec)
    check_columns(spec.schema)
    return dialect


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side. Raises as `check` does."""
    from pyspark_upsert_kafka.formats.csv.column_path import (
        compile_column_path,
        compile_vectorised_path,
    )
    from pyspark_upsert_kafka.formats.csv.row_path import row_reader
    from pyspark_upsert_kafka.formats.decoded_size import BoundedDecoder, Items, Measure, item_bytes
    from pyspark_upsert_kafka.formats.decoding import PathsDecoder, RowPath

    dialect = check(spec)
    target = arrow_schema(spec.schema)
    row = row_reader(spec.schema, dialect)
    row_path = RowPath(row, target, skip_bad=dialect.ignore_parse_errors)
    vectorised = compile_vectorised_path(spec.schema, target, dialect)
    paths: Decoder = row_path
    if vectorised is not None:
        by_columns = compile_column_path(spec.schema, target, dialect)
        paths = PathsDecoder(vectorised, row_path, by_columns)
    # An element takes one byte, its delimiter.
    widest = max((item_bytes(kind) for kind in target.types if pa.types.is_list(kind)), default=0)
    measure = Measure(Items(widest))
    return BoundedDecoder(paths, target, measure, skip_bad=dialect.ignore_parse_errors)


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side. Raises as `check` does."""
    from pyspark_upsert_kafka.formats.csv.encoding import CsvEncoder

    return CsvEncoder(spec.schema, check(spec))


FORMAT = Format("csv", OPTIONS, decoder, encoder, check_decoder=check, check_encoder=check)


def check_columns(columns: StructType) -> None:
    """Raises SchemaError for a column that CSV cannot carry, as ``CsvRowSchemaConverter`` does."""
    if not columns.fields:
        raise SchemaError(
            "The 'csv' format needs at least one column: it cannot write an empty row."
        )
    _check_names(columns, "")
    for field in columns.fields:
        kind = field.dataType
        if isinstance(kind, ArrayType):
            _check_nested([kind.elementType], field.name)
        elif isinstance(kind, StructType):
            _check_names(kind, f"{field.name}.")
            _check_nested([inner.dataType for inner in kind.fields], field.name)
        elif type(kind) not in TEXT_TYPES:
            raise SchemaError(
                f"Unsupported type '{kind.simpleString()}' for field '{field.name}': the 'csv' "
                "format carries booleans, numbers, strings, binary, dates, timestamps, and arrays "
                "and structs of these."
            )


def _check_names(columns: StructType, path: str) -> None:
    for name, times in Counter(columns.names).items():
        if times > 1:
            raise SchemaError(f"Field {path + name!r} occurs {times} times.")


def _check_nested(kinds: list[DataType], name: str) -> None:
    if not kinds:
        raise SchemaError(f"Field '{name}' is a struct without fields: the 'csv' format has none.")
    for kind in kinds:
        if type(kind) not in TEXT_TYPES:
            raise SchemaError(
                "Only simple types are supported in the second level nesting of fields "
                f"'{name}' but was: {kind.simpleString()}."
            )

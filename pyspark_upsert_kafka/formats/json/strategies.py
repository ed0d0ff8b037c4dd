"""Strategies by which the vectorised path reads columns; each compiles the reading of some of them.

Each column takes the fastest one that its type allows: ``pyarrow.json`` parses all messages together; orjson
parses them one by one, and their values become columns, which holds for maps; the row path reads the values too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.conversion import conformed, converted, one_chunk
from pyspark_upsert_kafka.formats.decoding import VectorisedPath
from pyspark_upsert_kafka.formats.json.column_builders import column_builder
from pyspark_upsert_kafka.formats.json.conversions import conversion
from pyspark_upsert_kafka.formats.json.document import DEEPEST, too_deep
from pyspark_upsert_kafka.formats.json.orjson_parser import fields_of
from pyspark_upsert_kafka.formats.json.row_path import row_reader
from pyspark_upsert_kafka.formats.json.settings import Settings

# The parser keeps 32-bit positions; a batch beyond this is cut into pieces first.
_LARGEST_TEXT = 1 << 30
# Literals that rapidjson takes for numbers, wherever they could be one and not part of a text.
_NOT_FINITE = r"(?:NaN|Inf(?:inity)?)[ \t\r\n]*[,}\]]"
_LETTERS_OF_NOT_FINITE = (b"N", b"I")
# Decimals that the parser would scale by a power of ten beyond its table, which gives any value:
# with a large negative exponent, with a very long fraction, or either of them hidden in escapes.
_NOT_SCALABLE = r"[0-9.][eE]-[0-9]{2,}\"?[ \t\r\n]*[,}\]]|[0-9]{39}|\\u00(?:3[0-9]|[46]5|2[dD])"

Parser = Callable[[Sequence[bytes]], "list[pa.Array]"]
"""Messages to their columns; raises ValueError when it is not sure to be right about all of them."""


def line_parser(schema: pa.Schema) -> Parser:
    """Compiles a parser of those fields; other fields of a message are ignored."""
    has_decimals = _has_decimals(schema)
    parse_options = pyarrow.json.ParseOptions(
        explicit_schema=schema, unexpected_field_behavior="ignore"
    )

    def parse(messages: Sequence[bytes]) -> list[pa.Array]:
        text = _joined(messages, has_decimals=has_decimals)
        read_options = pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        table = pyarrow.json.read_json(pa.BufferReader(text), read_options, parse_options)
        if table.num_rows != len(messages):
            raise ValueError("a message is not exactly one document")
        return [one_chunk(column) for column in table.columns]

    return parse


def _has_decimals(fields: Iterable[pa.Field]) -> bool:
    return any(
        pa.types.is_decimal(field.type)
        or _has_decimals(field.type.field(i) for i in range(field.type.num_fields))
        for field in fields
    )


def _joined(messages: Sequence[bytes], *, has_decimals: bool) -> bytes:
    """The messages as lines, once it is sure that the parser reads each as it should be read."""
    values = pa.array(messages, pa.binary())
    if isinstance(values, pa.ChunkedArray) or values.nbytes > _LARGEST_TEXT:
        raise ValueError("too much for one text")
    plain = pc.and_(pc.starts_with(values, "{"), pc.ends_with(values, "}"))
    if not pc.all(plain).as_py():
        raise ValueError("a message is not plain")
    texts = values.cast(pa.string())  # refuses what is not UTF-8
    joined = b"\n".join([*messages, b""])
    # A byte is found in the whole text at a fiftieth of what the pattern takes.
    if has_decimals or any(letter in joined for letter in _LETTERS_OF_NOT_FINITE):
        import polars as pl  # most tasks need none of it, and it takes long to import

        forbidden = f"{_NOT_FINITE}|{_NOT_SCALABLE}" if has_decimals else _NOT_FINITE
        if pl.Series(texts).str.contains(forbidden).any():
            raise ValueError("a number is one that the parser gets wrong")
    # What nests too deep has more than DEEPEST opening brackets and as many closing ones.
    longest = pc.max(pc.binary_length(values)).as_py()
    if longest > 2 * DEEPEST and any(too_deep(m) for m in messages if len(m) > 2 * DEEPEST):
        raise ValueError("a message is nested too deep")
    return joined


Columns = Callable[[Sequence[bytes]], "list[pa.Array]"]
"""Messages to some columns of their rows; ValueError = the batch is refused."""

Strategy = Callable[[StructType, "list[pa.Field]", Settings], Columns]
"""Compiles the reading of some columns."""


def fastest_strategy(kind: DataType, target: pa.DataType, settings: Settings) -> Strategy:
    """The fastest strategy that a type has."""
    if not _holds(kind, MapType | VariantType):
        return pyarrow_strategy
    # orjson's values do not tell where a field is missing.
    missing_matters = settings.fail_on_missing_field
    if missing_matters or _holds(kind, VariantType) or column_builder(target, settings) is None:
        return row_strategy
    return orjson_strategy


def _holds(kind: DataType, wanted: Any) -> bool:
    if isinstance(kind, wanted):
        return True
    if isinstance(kind, StructType):
        return any(_holds(field.dataType, wanted) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _holds(kind.elementType, wanted)
    return isinstance(kind, MapType) and _holds(kind.valueType, wanted)


def pyarrow_strategy(_: StructType, target: list[pa.Field], settings: Settings) -> Columns:
    """One text of all messages, parsed by ``pyarrow.json``."""
    conversions = [conversion(field.type, settings) for field in target]
    parsed = [(f.name, each.parsed) for f, each in zip(target, conversions, strict=True)]
    parse = line_parser(pa.schema(parsed))
    demanded = _all_required(target) if settings.fail_on_missing_field else target

    def columns(messages: Sequence[bytes]) -> list[pa.Array]:
        return converted(parse(messages), conversions, target, demanded)

    return columns


def _all_required(target: Iterable[pa.Field]) -> list[pa.Field]:
    """The fields as if all were NOT NULL: the parser does not tell a missing field from a null."""
    return [field.with_nullable(False).with_type(_required(field.type)) for field in target]


def _required(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(_all_required(kind))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_required(kind.value_type)))
    return kind


def orjson_strategy(_: StructType, target: list[pa.Field], settings: Settings) -> Columns:
    """Messages parsed by orjson; their values become columns."""
    names = [field.name for field in target]
    builders = [column_builder(field.type, settings) for field in target]

    def columns(messages: Sequence[bytes]) -> list[pa.Array]:
        fields = fields_of(messages, names)
        built = [build(values) for build, values in zip(builders, fields, strict=True) if build]
        return conformed(built, target)

    return columns


def row_strategy(columns: StructType, target: list[pa.Field], settings: Settings) -> Columns:
    """The row path reads each message, as variants must."""
    row = row_reader(columns, settings)

    def arrays(messages: Sequence[bytes]) -> list[pa.Array]:
        values = zip(*map(row, messages), strict=True)
        return [pa.array(v, field.type) for v, field in zip(values, target, strict=True)]

    return arrays


def compile_vectorised_path(
    columns: StructType, target: pa.Schema, settings: Settings
) -> VectorisedPath | None:
    """Compiles the vectorised path; None when it can read no column but by the row path."""
    strategies = [
        fastest_strategy(field.dataType, kind, settings)
        for field, kind in zip(columns, target.types, strict=True)
    ]
    if strategies and {*strategies} == {row_strategy}:
        return None
    compiled = {
        strategy: strategy(
            StructType(_some(columns.fields, [each is strategy for each in strategies])),
            _some(target, [each is strategy for each in strategies]),
            settings,
        )
        for strategy in {*strategies} or {pyarrow_strategy}
    }

    def read(messages: Sequence[bytes]) -> pa.RecordBatch | None:
        try:
            ready = {strategy: iter(columns(messages)) for strategy, columns in compiled.items()}
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None
        return batch_of([next(ready[strategy]) for strategy in strategies], target, len(messages))

    return read


def _some(fields: Iterable[Any], wanted: list[bool]) -> list[Any]:
    return [field for field, is_wanted in zip(fields, wanted, strict=True) if is_wanted]

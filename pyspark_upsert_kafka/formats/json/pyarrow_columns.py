"""``pyarrow.json``: it parses all messages of a batch together, as lines of one text.

Numbers, booleans and texts it reads itself. Other types it reads as texts, which are then converted as columns;
inside arrays and structs too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyspark.sql.types import ArrayType, DataType, StructType

from pyspark_upsert_kafka.core.bytes_column import BytesColumn, column_of, lines_of
from pyspark_upsert_kafka.formats.byte_order_mark import without_marks
from pyspark_upsert_kafka.formats.json.document import DEEPEST, too_deep
from pyspark_upsert_kafka.formats.json.leaf_readers import leaf
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.parsed_columns import Conversion, converted, one_chunk

# The parser keeps 32-bit positions; a batch beyond this is cut into pieces first.
_LARGEST_TEXT = 1 << 30
# Literals that rapidjson takes for numbers, wherever they could be one and not part of a text.
_NOT_FINITE = r"(?:NaN|Inf(?:inity)?)[ \t\r\n]*[,}\]]"
_LETTERS_OF_NOT_FINITE = (b"N", b"I")
# Decimals that the parser would scale by a power of ten beyond its table, which gives any value:
# with a large negative exponent, with a very long fraction, or either of them hidden in escapes.
_NOT_SCALABLE = r"[0-9.][eE]-[0-9]{2,}\"?[ \t\r\n]*[,}\]]|[0-9]{39}|\\u00(?:3[0-9]|[46]5|2[dD])"

_ARRAY_LEVEL, _OBJECT_LEVEL = len("[]"), len('{"":}')
"""The fewest bytes of a level of arrays or objects. The parser refuses braces without a name between them."""

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
    values = column_of(messages)
    if values.nbytes > _LARGEST_TEXT:
        raise ValueError("too much for one text")
    if not _are_plain(values):
        messages = without_marks(messages)
        values = column_of(messages)
        if not _are_plain(values):
            raise ValueError("a message is not plain")
    texts = values.cast(pa.string())  # refuses what is not UTF-8
    joined = lines_of(messages)
    # A byte is found in the whole text at a fiftieth of what the pattern takes.
    if has_decimals or any(letter in joined for letter in _LETTERS_OF_NOT_FINITE):
        import polars as pl  # most tasks need none of it, and it takes long to import

        forbidden = f"{_NOT_FINITE}|{_NOT_SCALABLE}" if has_decimals else _NOT_FINITE
        if pl.Series(texts).str.contains(forbidden).any():
            raise ValueError("a number is one that the parser gets wrong")
    # What nests too deep has more than DEEPEST levels, each of at least two bytes, or five of an object: {"":}
    of_level = _ARRAY_LEVEL if b"[" in joined else _OBJECT_LEVEL
    long = pc.greater(pc.binary_length(values), of_level * DEEPEST)
    if any(map(too_deep, BytesColumn(values.filter(long)))):
        raise ValueError("a message is nested too deep")
    return joined


def _are_plain(values: pa.LargeBinaryArray) -> bool:
    plain = pc.and_(pc.starts_with(values, "{"), pc.ends_with(values, "}"))
    return bool(pc.all(plain).as_py())


def pyarrow_columns(columns: StructType, target: list[pa.Field], settings: Settings) -> Parser:
    """Compiles the reading of some columns."""
    conversions = [_conversion(column.dataType, settings) for column in columns.fields]
    parsed = [(f.name, each.parsed) for f, each in zip(target, conversions, strict=True)]
    parse = line_parser(pa.schema(parsed))
    demanded = _all_required(target) if settings.fail_on_missing_field else target

    def read(messages: Sequence[bytes]) -> list[pa.Array]:
        return converted(parse(messages), conversions, target, demanded)

    return read


def _conversion(kind: DataType, settings: Settings) -> Conversion:
    """How a column of that type is read."""
    if isinstance(kind, StructType):
        return _struct(kind, settings)
    return _list(kind, settings) if isinstance(kind, ArrayType) else leaf(kind, settings).column


def _struct(columns: StructType, settings: Settings) -> Conversion:
    inner = [_conversion(field.dataType, settings) for field in columns.fields]
    names = columns.names
    parsed = pa.struct([(name, each.parsed) for name, each in zip(names, inner, strict=True)])

    def convert(array: pa.Array) -> pa.Array:
        children = [each.convert(array.field(i)) for i, each in enumerate(inner)]
        fields = [(name, child.type) for name, child in zip(names, children, strict=True)]
        return _rebuilt(array, pa.struct(fields), own_buffers=1, children=children)

    return Conversion(parsed, convert)


def _list(kind: ArrayType, settings: Settings) -> Conversion:
    inner = _conversion(kind.elementType, settings)

    def convert(array: pa.Array) -> pa.Array:
        values = inner.convert(array.values)
        return _rebuilt(array, pa.list_(values.type), own_buffers=2, children=[values])

    return Conversion(pa.list_(inner.parsed), convert)


def _rebuilt(
    array: pa.Array, kind: pa.DataType, own_buffers: int, children: list[pa.Array]
) -> pa.Array:
    own = array.buffers()[:own_buffers]
    return pa.Array.from_buffers(kind, len(array), own, array.null_count, children=children)


def _all_required(target: Iterable[pa.Field]) -> list[pa.Field]:
    """The fields as if all were NOT NULL: the parser does not tell a missing field from a null."""
    return [field.with_nullable(False).with_type(_required(field.type)) for field in target]


def _required(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(_all_required(kind))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_required(kind.value_type)))
    return kind

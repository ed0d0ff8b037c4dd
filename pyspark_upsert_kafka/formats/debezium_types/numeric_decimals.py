"""Decimals that are numbers in JSON, beside a schema that says bytes: ``decimal.format`` = ``NUMERIC`` in Kafka Connect.

Such a number becomes the text of the bytes that the converter writes otherwise. Whether a converter is set so, is seen from its
messages: those that cannot be read as they are, are looked into, and after the first of them all.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_upsert_kafka.core.bytes_column import some_of
from pyspark_upsert_kafka.formats.batches import replaced
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from pyspark_upsert_kafka.formats.debezium_types.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.debezium_types.decimals import EXACT, MOST_PLACES, scale_of
from pyspark_upsert_kafka.formats.decoding import UnreadableError
from pyspark_upsert_kafka.formats.json.document import Number, compact, parse

_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def has_decimals(schema: ConnectSchema, wanted: DataType) -> bool:
    """Whether a column wants decimals of a value; see ``mapping.py`` for what is read of which schema."""
    if _is_decimal(schema):
        return True
    return any(has_decimals(part, kind) for _, part, kind in _parts(schema, wanted))


def _is_decimal(schema: ConnectSchema) -> bool:
    return schema.type == "bytes" and schema.name == _DECIMAL


def _parts(
    schema: ConnectSchema, wanted: DataType
) -> Iterator[tuple[str | None, ConnectSchema, DataType]]:
    """The parts of a value that a column wants: fields by their names; None = all items."""
    if isinstance(wanted, StructType) and schema.type == "struct":
        for field in wanted.fields:
            if field.name in schema.fields:
                yield field.name, schema.fields[field.name], field.dataType
    elif schema.items is not None and isinstance(wanted, ArrayType) and schema.type == "array":
        yield None, schema.items, wanted.elementType
    elif schema.items is not None and isinstance(wanted, MapType) and schema.type == "map":
        yield None, schema.items, wanted.valueType


class NumericDecimalsDecoder:
    """Decodes messages of a schema with decimals, be they bytes or numbers.

    Args:
        plain: Decodes messages whose decimals are bytes.
        schema: Their schema.
        columns: The columns.
        lenient: Whether the plain decoder reads a value as NULL that it cannot read, so that nothing shows that it was a number.
    """

    def __init__(
        self, plain: Decoder, schema: ConnectSchema, columns: StructType, *, lenient: bool
    ) -> None:
        self._plain, self._schema, self._columns = plain, schema, columns
        self._lenient = lenient
        self._are_numbers = False

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of some messages. Raises TooManyMessagesError as the plain decoder does."""
        if self._are_numbers or self._lenient:
            return self._plain.decode(self._rewritten(messages))
        decoded = self._plain.decode(messages)
        bad = sorted(decoded.errors)
        if not bad:
            return decoded
        some = some_of(messages, bad)
        again = self._rewritten(some)
        if all(old == new for old, new in zip(some, again, strict=True)):
            return decoded
        self._are_numbers = True
        return replaced(decoded, bad, self._plain.decode(again))

    def _rewritten(self, messages: Sequence[bytes]) -> list[bytes]:
        return [self._with_bytes(message) for message in messages]

    def _with_bytes(self, message: bytes) -> bytes:
        try:
            value = parse(message)
        except UnreadableError:
            return message
        return compact(with_bytes(value, self._schema, self._columns)).encode()


def with_bytes(value: Any, schema: ConnectSchema, wanted: DataType) -> Any:
    """A parsed value of a schema, in which each decimal that a column wants is the text of its bytes, if it is a number."""
    if _is_decimal(schema):
        return _text_of_bytes(value, schema) if type(value) is Number else value
    for name, part, kind in _parts(schema, wanted):
        if type(value) is dict and not isinstance(wanted, ArrayType):
            names = value if name is None else (name,)
            changed = {each: with_bytes(value[each], part, kind) for each in names if each in value}
            value = {**value, **changed}
        elif type(value) is list and isinstance(wanted, ArrayType):
            value = [with_bytes(each, part, kind) for each in value]
    return value


def _text_of_bytes(number: Number, schema: ConnectSchema) -> str:
    """The text of the unscaled number's bytes; a number with more digits than the scale has, or than any database, stays what it is."""
    scale = scale_of(schema)
    try:
        exact = Decimal(number)
    except InvalidOperation:  # an exponent beyond all bounds
        return number
    longest = max(abs(exact.adjusted()), len(number))
    if scale is None or max(abs(scale), longest) > MOST_PLACES:
        return number
    unscaled = exact.scaleb(scale, EXACT)
    if unscaled != unscaled.to_integral_value(context=EXACT):
        return number
    whole = int(unscaled)
    return b64encode(whole.to_bytes(whole.bit_length() // 8 + 1, "big", signed=True)).decode()

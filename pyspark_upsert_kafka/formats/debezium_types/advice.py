"""What to set where a message comes without its schema, and a value in it means nothing without."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from pyspark_upsert_kafka.formats.json.document import Number, parse

# A date, or a timestamp without a zone, as 'time.precision.mode' = 'isostring' writes them.
_IN_UTC = re.compile(r"[+-]?[0-9]{4,9}-[0-9]{2}-[0-9]{2}(T.*)?Z")
_FIELD = re.compile(r"field '(.*?)': ")


@dataclass(frozen=True)
class AdvisedDecoder:
    """Decodes JSON messages without schemas, and says of values that only a schema explains what to set.

    Args:
        plain: Decodes the messages.
        columns: The columns of the messages.
        send: What makes messages carry their schemas, as a part of a sentence.
    """

    plain: Decoder
    columns: StructType
    send: str

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of some messages, and the errors of the others with advice."""
        decoded = self.plain.decode(messages)
        errors = {at: why + self._advice(why, messages[at]) for at, why in decoded.errors.items()}
        return replace(decoded, errors=errors)

    def _advice(self, why: str, message: bytes) -> str:
        """The end of an error."""
        named = _FIELD.match(why)
        if named is None:
            return ""
        wanted: Any = self.columns
        value: Any = parse(message)
        for name in named[1].split("."):
            if not isinstance(wanted, StructType) or name not in wanted.names:
                return ""
            wanted, value = wanted[name].dataType, value.get(name)
        advice = without_schema(wanted, value, self.send)
        return f". {advice}" if advice else ""


def without_schema(wanted: DataType, value: Any, send: str) -> str | None:
    """What to do about a value that cannot be read as the column wants; None = its schema would not help.

    Args:
        wanted: The type of the column.
        value: The value, as ``formats/json/document.py`` parses it.
        send: See `AdvisedDecoder`.
    """
    if isinstance(wanted, TimestampType | TimestampNTZType | DateType) and type(value) is Number:
        return (
            f"Debezium sends a {wanted.typeName().upper()} as a number, and only the schema says "
            f"whether it counts days, milliseconds, microseconds or nanoseconds: {send}, or declare "
            "the column BIGINT (the unit follows from 'time.precision.mode' of the connector)"
        )
    if isinstance(wanted, TimestampNTZType | DateType) and _is_in_utc(value):
        return (
            f"Debezium's 'time.precision.mode' = 'isostring' writes a {wanted.typeName().upper()} with the "
            f"zone Z, and only the schema says that it has none: {send}, or declare the column STRING"
        )
    if isinstance(wanted, DecimalType) and not isinstance(value, Number) and value is not None:
        return (
            "Debezium sends a DECIMAL as bytes, and only the schema says where its point is: "
            f"{send}, or set 'decimal.handling.mode' = 'string' in the connector"
        )
    return None


def _is_in_utc(value: Any) -> bool:
    return type(value) is str and _IN_UTC.fullmatch(value) is not None

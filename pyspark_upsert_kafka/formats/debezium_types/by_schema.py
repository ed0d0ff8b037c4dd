"""JSON messages that carry their schemas: those of one schema are decoded together, by what that schema says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.batches import (
    batch_of,
    merge_by_position,
    nulls,
    replaced,
)
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from pyspark_upsert_kafka.formats.debezium_types.connect_schema import (
    ConnectSchema,
    parse_connect_schema,
)
from pyspark_upsert_kafka.formats.debezium_types.mapping import RowMapping, row_mapping
from pyspark_upsert_kafka.formats.debezium_types.messages import Part, Splitter, exactly
from pyspark_upsert_kafka.formats.debezium_types.numeric_decimals import (
    NumericDecimalsDecoder,
    has_decimals,
)
from pyspark_upsert_kafka.formats.decoding import Refusal, UnreadableError
from pyspark_upsert_kafka.formats.json.document import parse

# How many schemas, and decoders, are kept.
_MOST_KEPT = 16

_Kept = TypeVar("_Kept")


@dataclass(frozen=True)
class MappedDecoder:
    """Decodes the physical columns, and makes the table's columns of them.

    Args:
        plain: Decodes the physical columns.
        mapping: What is made of these.
    """

    plain: Decoder
    mapping: RowMapping

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of some messages."""
        return self.mapping.apply(self.plain.decode(messages))


@dataclass(frozen=True)
class WithSchema:
    """Decodes messages of a schema, and adds that as the last column.

    Args:
        decoder: Decodes the other columns.
        target: All columns.
        text: The schema; None = the messages have none.
    """

    decoder: Decoder
    target: pa.Schema
    text: str | None

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of some messages."""
        decoded = self.decoder.decode(messages)
        count = decoded.rows.num_rows
        text, null = pa.scalar(self.text, pa.string()), pa.scalar(None, pa.string())
        schemas = pc.if_else(pa.array(decoded.read), text, null)
        rows = batch_of([*decoded.rows.columns, schemas], self.target, count)
        return Decoded(rows, decoded.errors, decoded.skipped)


class SchemaDecoder:
    """Decodes messages ``{"schema":...,"payload":...}``.

    Args:
        columns: The columns of the payloads.
        plain: Compiles the decoder of payloads for the columns as the messages have them.
        lenient: Whether a bad value is NULL, and a message that cannot be read is skipped.
        schema_column: Name of one more column, with the schema of each message as JSON; None = there is none.
    """

    def __init__(
        self,
        columns: StructType,
        plain: Callable[[StructType], Decoder],
        *,
        lenient: bool,
        schema_column: str | None = None,
    ) -> None:
        self._columns, self._plain, self._lenient = columns, plain, lenient
        self._schema_column = schema_column
        self._target = arrow_schema(columns)
        if schema_column is not None:
            self._target = self._target.append(pa.field(schema_column, pa.string()))
        self._splitter = Splitter()
        self._by_schema: dict[bytes, Decoder] = {}
        self._by_columns: dict[str, Decoder] = {}

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of some messages, none of which is null.

        Raises:
            TooManyMessagesError: As the decoder of payloads does.
        """
        parts, errors = self._splitter.split(messages)
        done = [(np.array([*errors], np.int64), self._unreadable(*errors.values()))]
        done += [(part.places, self._decoded(part, messages)) for part in parts]
        return merge_by_position(done)

    def _decoded(self, part: Part, messages: Sequence[bytes]) -> Decoded:
        """A part; messages whose payload was cut out wrongly are read one by one."""
        decoded = self._decoder(part.schema).decode(part.payloads)
        unread = np.flatnonzero(~decoded.read).tolist()
        odd = [at for at in unread if _is_odd(part.payloads[at])]
        if not odd:
            return decoded
        alone = [self._alone(messages[part.places[at]]) for at in odd]
        return replaced(
            decoded,
            odd,
            merge_by_position([*zip(np.arange(len(odd))[:, None], alone, strict=True)]),
        )

    def _alone(self, message: bytes) -> Decoded:
        try:
            schema, payload = exactly(message)
        except UnreadableError as why:
            return self._unreadable(str(why))
        return self._decoder(schema).decode([payload])

    def _unreadable(self, *reasons: str) -> Decoded:
        """Messages that are not read, and why."""
        rows = nulls(self._target, len(reasons))
        if self._lenient:
            return Decoded(rows, skipped=frozenset(range(len(reasons))))
        return Decoded(rows, dict(enumerate(reasons)))

    def _decoder(self, schema: bytes) -> Decoder:
        return _kept(self._by_schema, schema, self._compiled)

    def _compiled(self, schema: bytes) -> Decoder:
        declared = _declared(schema)
        try:
            mapping = row_mapping(declared, self._columns, lenient=self._lenient)
        except SchemaError as why:
            return Refusal(str(why), self._target)
        physical = mapping.physical
        plain = _kept(self._by_columns, physical.json(), lambda _: self._plain(physical))
        decoder: Decoder = MappedDecoder(plain, mapping)
        if declared is not None and has_decimals(declared, self._columns):
            decoder = NumericDecimalsDecoder(
                decoder, declared, self._columns, lenient=self._lenient
            )
        if self._schema_column is None:
            return decoder
        return WithSchema(decoder, self._target, None if schema == b"null" else schema.decode())


def _declared(schema: bytes) -> ConnectSchema | None:
    """The schema that a message has; None = it has none, or something that says nothing, which Flink does not look at."""
    try:
        return parse_connect_schema(schema)
    except UnreadableError:
        return None


def _is_odd(payload: bytes) -> bool:
    """Whether a payload is null, or not exactly one JSON value."""
    try:
        return parse(payload) is None
    except UnreadableError:
        return True


_Key = TypeVar("_Key")


def _kept(cache: dict[_Key, _Kept], key: _Key, make: Callable[[_Key], _Kept]) -> _Kept:
    """What a cache has under a key, which may be new; what was used least recently is forgotten."""
    found = cache.pop(key) if key in cache else make(key)
    cache[key] = found
    if len(cache) > _MOST_KEPT:
        del cache[next(iter(cache))]
    return found

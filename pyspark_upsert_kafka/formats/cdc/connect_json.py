"""JSON of Kafka Connect, with its schema around it and without.

Messages ``{"schema":...,"payload":...}`` are taken apart, and those of one schema are decoded together, by what that schema says.
Messages of one schema begin with the same bytes, up to where the payload begins. So only the first message of a schema is
parsed to find that place; of the others, the bytes at the beginning are compared and cut off, and the bracket at the end.
Where a message begins like that and goes on otherwise (a second ``payload``, for example), what is cut out of it is no JSON
value. So whoever cannot decode a payload parses the whole message, by `exactly`; a payload that is null is such a one.

Where a message comes without its schema, and a value in it means nothing without, the error says what to set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.bytes_column import BytesColumn, column_of
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.batches import batch_of, nulls
from pyspark_upsert_kafka.formats.binary_values import Numbers
from pyspark_upsert_kafka.formats.cdc.columns_by_schema import (
    MappedDecoder,
    row_mapping,
)
from pyspark_upsert_kafka.formats.cdc.connect_schema import (
    ConnectSchema,
    parse_connect_schema,
)
from pyspark_upsert_kafka.formats.cdc.semantic_decimals import (
    NumericDecimalsDecoder,
    has_decimals,
)
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoded, Decoder
from pyspark_upsert_kafka.formats.decoding import (
    Refusal,
    UnreadableError,
    merge_by_position,
    replaced,
)
from pyspark_upsert_kafka.formats.json.json_document import (
    DEEPEST,
    Number,
    compact,
    parse,
    parse_object,
    too_deep,
)
from pyspark_upsert_kafka.formats.writers_columns import SchemaStopError, watched

_SCHEMA, _PAYLOAD = '{"schema":', ',"payload":'
# A topic has one schema, or two while its table changes; each costs a comparison with all messages of a batch.
_MOST_BEGINNINGS = 16
_LONGEST_BEGINNING = 1024 * 1024
_DEEPEST = DEEPEST + 1
"""How deep a message may nest, in which a payload may be as deep as it may be by itself."""

_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)
# How many schemas, and decoders, are kept.
_MOST_KEPT = 16

_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")


@dataclass(frozen=True)
class _WithSchema:
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
        watching: The side whose watch looks at each schema, and the table's columns by a schema, None = it gives none.
    """

    def __init__(
        self,
        columns: StructType,
        plain: Callable[[StructType], Decoder],
        *,
        lenient: bool,
        schema_column: str | None = None,
        watching: tuple[CodecSpec, Callable[[ConnectSchema], StructType | None]] | None = None,
    ) -> None:
        self._watching = watching
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
            SchemaStopError: Messages of a schema must not be decoded.
        """
        parts, errors = self._splitter.split(messages)
        done = [(np.array([*errors], np.int64), self._unreadable(*errors.values()))]
        done += [(part.places, self._decoded(part, messages)) for part in parts]
        return merge_by_position(done)

    def _decoded(self, part: Part, messages: Sequence[bytes]) -> Decoded:
        """A part; messages whose payload was cut out wrongly are read one by one."""
        try:
            decoded = self._decoder(part.schema).decode(part.payloads)
        except SchemaStopError as stop:
            stop.at(messages[part.places[0]])
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
        try:
            return self._decoder(schema).decode([payload])
        except SchemaStopError as stop:
            stop.at(message)

    def _unreadable(self, *reasons: str) -> Decoded:
        """Messages that are not read, and why."""
        rows = nulls(self._target, len(reasons))
        if self._lenient:
            return Decoded(rows, skipped=frozenset(range(len(reasons))))
        return Decoded(rows, dict(enumerate(reasons)))

    def _decoder(self, schema: bytes) -> Decoder:
        return _kept(self._by_schema, schema, self._compiled)

    def _compiled(self, schema: bytes) -> Decoder:
        declared, compiled = _declared(schema), partial(self._unwatched, schema)
        columns = (
            None if declared is None or self._watching is None else self._watching[1](declared)
        )
        if self._watching is None or columns is None:
            return compiled()
        return watched(
            self._watching[0],
            "the schema beside it",
            lambda: None,
            lambda *_: columns,
            compiled,
        )

    def _unwatched(self, schema: bytes) -> Decoder:
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
        return _WithSchema(decoder, self._target, None if schema == b"null" else schema.decode())


def _declared(schema: bytes) -> ConnectSchema | None:
    """The schema that a message has; None = it has none, or something that says nothing, which Flink does not look at."""
    try:
        return parse_connect_schema(schema)
    except UnreadableError:
        return None


def schema_in(message: bytes) -> ConnectSchema | None:
    """The schema of a message; None = it has none, or cannot be read."""
    try:
        return _declared(exactly(message)[0])
    except UnreadableError:
        return None


def _is_odd(payload: bytes) -> bool:
    """Whether a payload is null, or not exactly one JSON value."""
    try:
        return parse(payload) is None
    except UnreadableError:
        return True


def _kept(cache: dict[_Key, _Kept], key: _Key, make: Callable[[_Key], _Kept]) -> _Kept:
    """What a cache has under a key, which may be new; what was used least recently is forgotten."""
    found = cache.pop(key) if key in cache else make(key)
    cache[key] = found
    if len(cache) > _MOST_KEPT:
        del cache[next(iter(cache))]
    return found


@dataclass(frozen=True)
class Part:
    """The messages of a batch that have the same schema.

    Args:
        schema: The schema as JSON; ``null`` for messages without one.
        places: Where the messages stand in the batch.
        payloads: Their payloads; see `exactly` for one that is no JSON value.
    """

    schema: bytes
    places: Numbers
    payloads: BytesColumn


class Splitter:
    """Takes messages apart, and remembers how those of the last schemas begin."""

    def __init__(self) -> None:
        self._beginnings: list[bytes] = []

    def split(self, messages: Sequence[bytes]) -> tuple[list[Part], dict[int, str]]:
        """The messages by their schemas, and what is wrong with those that have no payload."""
        column = column_of(messages)
        left = np.ones(len(column), np.bool_)
        parts = [*self._known(column, left), *self._learned(column, left)]
        others, errors = _parsed(column, np.flatnonzero(left).tolist())
        return [*parts, *others], errors

    def _known(self, column: pa.LargeBinaryArray, left: Numbers) -> Iterator[Part]:
        """The messages that begin as earlier ones did; these are no longer ``left``."""
        for beginning in self._beginnings:
            if not left.any():
                return
            part = _taken(beginning, column, left)
            if part is not None:
                yield part

    def _learned(self, column: pa.LargeBinaryArray, left: Numbers) -> Iterator[Part]:
        """The messages that begin in new ways, but not in very many."""
        places = iter(np.flatnonzero(left).tolist())
        for _ in range(_MOST_BEGINNINGS):
            beginning = self._new_beginning(column, left, places)
            if beginning is None:
                return
            self._beginnings = [beginning, *self._beginnings][:_MOST_BEGINNINGS]
            part = _taken(beginning, column, left)
            if part is not None:
                yield part

    def _new_beginning(
        self, column: pa.LargeBinaryArray, left: Numbers, places: Iterator[int]
    ) -> bytes | None:
        """How the next message begins that is left and written as the converter does; None = there is none."""
        for place in places:
            beginning = _beginning(column[place].as_py()) if left[place] else None
            if beginning is not None and beginning not in self._beginnings:
                return beginning
        return None


def exactly(message: bytes) -> tuple[bytes, bytes]:
    """The schema and the payload of a message, each as JSON; of members with the same name the last counts.

    Raises:
        UnreadableError: It is no JSON object, or its payload is null or missing.
    """
    document = parse_object(message, _DEEPEST)
    if document.get("payload") is None:
        hint = "; it has no schema around it, which 'value.debezium-json.schema-include' = 'false' reads"
        raise UnreadableError(
            f"field 'payload' is null or missing{hint if 'op' in document else ''}"
        )
    return compact(document.get("schema")).encode(), compact(document["payload"]).encode()


def _beginning(message: bytes) -> bytes | None:
    """What stands before the payload; None = the message does not begin as the converter writes it."""
    if not message.startswith(_SCHEMA.encode()) or too_deep(message, _DEEPEST):
        return None
    try:
        text = message.decode()
        _, end = _SCANNER.raw_decode(text, len(_SCHEMA))
        parse(text[len(_SCHEMA) : end].encode())  # which takes no NaN, for one
    except (ValueError, RecursionError):
        return None
    if not text.startswith(_PAYLOAD, end):
        return None
    beginning = text[: end + len(_PAYLOAD)].encode()
    return beginning if len(beginning) <= _LONGEST_BEGINNING else None


def _taken(beginning: bytes, column: pa.LargeBinaryArray, left: Numbers) -> Part | None:
    """The messages left that begin like this; they are no longer left. None = there are none."""
    like_it = pc.and_(pc.starts_with(column, beginning), pc.ends_with(column, b"}"))
    found = like_it.to_numpy(zero_copy_only=False) & left
    if not found.any():
        return None
    left &= ~found
    payloads = pc.binary_slice(column.filter(pa.array(found)), len(beginning), -1)
    schema = beginning[len(_SCHEMA) : -len(_PAYLOAD)]
    return Part(schema, np.flatnonzero(found), BytesColumn(payloads))


def _parsed(
    column: pa.LargeBinaryArray, places: Sequence[int]
) -> tuple[list[Part], dict[int, str]]:
    """The same of messages that are written in another way."""
    found: dict[bytes, dict[int, bytes]] = {}
    errors = {}
    for place in places:
        try:
            schema, payload = exactly(column[place].as_py())
        except UnreadableError as why:
            errors[place] = str(why)
        else:
            found.setdefault(schema, {})[place] = payload
    parts = [
        Part(schema, np.array([*payloads]), BytesColumn.of(payloads.values()))
        for schema, payloads in found.items()
    ]
    return parts, errors


# A date, or a timestamp without a zone, as 'time.precision.mode' = 'isostring' writes them.
_IN_UTC = re.compile(r"[+-]?[0-9]{4,9}-[0-9]{2}-[0-9]{2}(T.*)?Z")
_FIELD = re.compile(r"field '(.*?)': ")


@dataclass(frozen=True)
class AdvisedDecoder:
    """Decodes JSON messages, and says of values of Debezium that do not fit what to set.

    Args:
        plain: Decodes the messages.
        columns: The columns of the messages.
        send: What makes messages carry their schemas, as a part of a sentence; None = they do.
    """

    plain: Decoder
    columns: StructType
    send: str | None

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
        advice = _of_flags(wanted, value)
        if advice is None and self.send is not None:
            advice = without_schema(wanted, value, self.send)
        return f". {advice}" if advice else ""


def _of_flags(wanted: DataType, value: Any) -> str | None:
    """What to do about a number in a BOOLEAN column; None = it is none."""
    if not isinstance(wanted, BooleanType) or type(value) is not Number:
        return None
    return (
        "Debezium sends BOOLEAN and TINYINT(1) of MySQL as a number: declare the column SMALLINT, or let the connector send true and "
        "false with its converter TinyIntOneToBooleanConverter"
    )


def without_schema(wanted: DataType, value: Any, send: str) -> str | None:
    """What to do about a value that cannot be read as the column wants; None = its schema would not help.

    Args:
        wanted: The type of the column.
        value: The value, as ``formats/json/json_document.py`` parses it.
        send: See `AdvisedDecoder`.
    """
    if isinstance(wanted, TimestampType | TimestampNTZType | DateType) and type(value) is Number:
        return (
            f"Debezium sends a {wanted.typeName().upper()} as a number, and only the schema says "
            f"whether it counts days, milliseconds, microseconds or nanoseconds: {send}, or declare "
            "the column BIGINT (the unit follows from 'time.precision.mode' of the connector)"
        )
    is_in_utc = type(value) is str and _IN_UTC.fullmatch(value)
    if isinstance(wanted, TimestampNTZType | DateType) and is_in_utc:
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

"""What a CDC format says of its envelopes: which fields hold rows, which one says what was done to them, and where metadata stands.

``ogg_json.py`` is the smallest format that is made of it. How the rows stand in the envelopes is one of the ways of
``row_changes.py``. Neither Arrow nor NumPy is imported here: planning a query needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.types import DataType, StringType, StructField, StructType

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.formats.codec import CodecSpec, Format
from pyspark_upsert_kafka.formats.json import OPTIONS as JSON_OPTIONS
from pyspark_upsert_kafka.formats.json import check_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_upsert_kafka.formats.codec import ChangeDecoder, ChangeSpec, Decoder

_FAIL_ON_MISSING = "fail-on-missing-field"
_SHOWN = 40
_TEXT = StringType()
_MIN_US, _MAX_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999; a time beyond them is shown as NULL."""

OPTIONS: tuple[Option, ...] = tuple(each for each in JSON_OPTIONS if each.name != _FAIL_ON_MISSING)
"""The options that all in JSON have; those about writing are accepted, since Flink has them."""


class Op(IntEnum):
    """What was done to a row."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2


@dataclass(frozen=True)
class Place:
    """Where metadata stands in an envelope.

    Args:
        path: The names of the fields that lead to it.
        type: The type as which the format reads it.
        convert: From that type to the type that a column shows; None = it is the same.
    """

    path: tuple[str, ...]
    type: DataType = _TEXT
    convert: Callable[[pa.Array], pa.Array] | None = None


def millis(column: pa.Array) -> pa.Array:
    """Milliseconds since 1970 as timestamps."""
    return _times(column, 1000)


def seconds(column: pa.Array) -> pa.Array:
    """Seconds since 1970 as timestamps."""
    return _times(column, 1_000_000)


def _times(column: pa.Array, micros: int) -> pa.Array:
    """Numbers of some microseconds each as timestamps."""
    import pyarrow as pa
    import pyarrow.compute as pc

    first, last = _MIN_US // micros, _MAX_US // micros
    known = pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last))
    kept = pc.if_else(known, column, pa.scalar(None, column.type))
    return pc.multiply(kept, micros).cast(pa.timestamp("us", "UTC"))


def local_texts(column: pa.Array) -> pa.Array:
    """Times like ``2024-01-31 12:30:00.123456``, with a space or a ``T``, as timestamps in UTC; another text is NULL."""
    import pyarrow as pa

    from pyspark_upsert_kafka.formats.timestamp_text import TimestampText

    standards = (TimestampText("SQL", zoned=False), TimestampText("ISO-8601", zoned=False))

    def local(text: str) -> int | None:
        for standard in standards:
            try:
                return standard.micros(text)
            except ValueError:
                continue
        return None

    texts = column.to_pylist()
    return pa.array(
        [None if text is None else local(text) for text in texts], pa.timestamp("us", "UTC")
    )


@dataclass(frozen=True)
class EnvelopeFields:
    """The fields of an envelope that say what was done to a row, and what errors say of them.

    Args:
        operation: The field that says what was done.
        known: What each of its values means.
        passed_over: Its values in envelopes that change no row, and what these are.
        before: The field of the row before an update.
        deleted: The field of a deleted row.
        after: The field of the row after.
        product: What writes the format, if it may leave out the row before; None = it does not.
        metadata: Where each metadata of the format stands, by its key.
    """

    operation: str
    known: Mapping[str, Op]
    passed_over: Mapping[str, str]
    before: str
    deleted: str
    after: str
    product: str | None = None
    metadata: Mapping[str, Place] = field(default_factory=dict)

    def columns(self, wanted: Iterable[str] = ()) -> list[StructField]:
        """The fields of an envelope beside its rows: the operation, and what holds the metadata of some keys.

        An object of which all is wanted is read as a map of texts, which holds its parts too.
        """
        found: dict[str, StructField] = {}
        parts: dict[str, dict[str, StructField]] = {}
        for place in (self.metadata[key] for key in wanted):
            name = place.path[0]
            if len(place.path) == 1:
                found[name] = StructField(name, place.type)
            else:
                part = place.path[1]
                parts.setdefault(name, {})[part] = StructField(part, place.type)
        objects = [
            StructField(name, StructType([*fields.values()]))
            for name, fields in parts.items()
            if name not in found
        ]
        return [StructField(self.operation, StringType()), *found.values(), *objects]

    def unknown_operation(self, value: str | None) -> str:
        """The error about another value than those; None = there is none."""
        if value is None:
            return f'the message has no "{self.operation}"'
        shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        expected = ", ".join([*self.known, *self.passed_over])
        return f'unknown "{self.operation}" value "{shown}", expected one of {expected}'

    def no_row(self, op: Op) -> str:
        """The error about an insert or update without the row after it."""
        return f'the "{self.after}" field of {op.name} message is null or missing'

    def no_row_before(self, op: Op) -> str:
        """The error about an update or delete without the row before it; the hint is Flink's."""
        name = self.before if op is Op.UPDATE else self.deleted
        if self.product is None:
            return f'the "{name}" field of {op.name} message is null or missing'
        return (
            f'The "{name}" field of {op.name} message is null, if you are using {self.product} Postgres Connector, please '
            "check the Postgres table has been set REPLICA IDENTITY to FULL level"
        )


def row_after(spec: ChangeSpec) -> StructType:
    """A row as a field of an envelope; what is NOT NULL in the table is checked when it is known what happened to the row."""
    return _not_empty([StructField(each.name, each.dataType) for each in spec.value.schema])


def row_before(spec: ChangeSpec) -> StructType:
    """The same before a change, of which a table with a primary key needs the key only."""
    after = row_after(spec)
    return _not_empty([each for each in after if each.name in spec.key]) if spec.is_keyed else after


def _not_empty(fields: list[StructField]) -> StructType:
    """An object of these fields; one without fields has one that no message has, so that it can be told from NULL."""
    return StructType(fields or [StructField("", StringType())])


def json_decoder(fields: Sequence[StructField], spec: ChangeSpec) -> Decoder:
    """Compiles the decoder of envelopes in JSON with these fields."""
    from pyspark_upsert_kafka.formats import json

    options = {**spec.value.options, _FAIL_ON_MISSING: False}
    return json.decoder(replace(spec.value, schema=StructType([*fields]), options=options))


def json_format(
    name: str,
    changes: Callable[[ChangeSpec], ChangeDecoder],
    rows: Sequence[str],
    options: tuple[Option, ...] = OPTIONS,
) -> Format:
    """A CDC format in JSON.

    Args:
        name: Its name.
        changes: Compiles its decoder.
        rows: The fields of the envelope that may hold a row, or an array of rows.
        options: Its options.
    """

    def fields(message: bytes) -> Mapping[str, Any]:
        """The fields of a message's first row."""
        from pyspark_upsert_kafka.formats.json.json_document import parse_object

        whole = parse_object(message)
        payload = whole.get("payload")
        envelope = payload if type(payload) is dict else whole
        found = next((envelope[name] for name in rows if envelope.get(name)), None)
        row = found[0] if type(found) is list else found
        return row if type(row) is dict else {}

    return Format(
        name,
        options,
        refuse,
        refuse,
        check_decoder=lambda spec: check_columns(spec.schema),
        fields=fields,
        changes=changes,
    )


def refuse(spec: CodecSpec) -> NoReturn:
    """Refuses to read keys, and to write."""
    raise OptionError(
        f"A CDC format is for reading values: it is no format of the message {spec.side}, and nothing is written with it. "
        "'json' and 'avro-confluent' are."
    )

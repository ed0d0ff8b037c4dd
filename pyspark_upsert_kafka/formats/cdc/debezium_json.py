"""``debezium-json``: Debezium's envelopes in JSON, as Flink's format of this name reads them, and the keys of JSON beside them.

Kafka Connect has a converter for keys and another one for values. So whether a key has its schema around it, does not follow from
what values have: the key shows it. As that of values, it says what the key means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    DataType,
    DayTimeIntervalType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.core.ddl.types import types_within
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import boolean
from pyspark_upsert_kafka.formats import json
from pyspark_upsert_kafka.formats.cdc.envelope_format import (
    OPTIONS,
    EnvelopeFields,
    Op,
    Place,
    json_decoder,
    json_format,
    millis,
    row_after,
    row_before,
)
from pyspark_upsert_kafka.formats.codec import (
    ChangeDecoder,
    ChangeSpec,
    CodecSpec,
    Decoded,
    Decoder,
)
from pyspark_upsert_kafka.formats.registry_format import of_newest_schema

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.cdc.connect_schema import ConnectSchema

_PAYLOAD, _SCHEMA = "payload", "schema"
_INCLUDE = "schema-include"
_SEND = (
    "let the connector send the schema ('value.converter.schemas.enable' = 'true') and set "
    f"'value.debezium-json.{_INCLUDE}' = 'true'"
)
_SEND_OF_KEYS = (
    "let the connector send the schema of keys ('key.converter.schemas.enable' = 'true')"
)

DEBEZIUM = EnvelopeFields(
    operation="op",
    # r is a row that the connector's snapshot has read.
    known={"c": Op.INSERT, "r": Op.INSERT, "u": Op.UPDATE, "d": Op.DELETE},
    passed_over={"t": "a truncate of the table ('op' is 't')"},
    before="before",
    deleted="before",
    after="after",
    product="Debezium",
    metadata={
        # Where no schema is around the envelope, it is looked for in the envelope, as Flink does; so it is NULL.
        "value.schema": Place((_SCHEMA,)),
        "value.ingestion-timestamp": Place(("ts_ms",), LongType(), millis),
        "value.source.timestamp": Place(("source", "ts_ms"), LongType(), millis),
        "value.source.database": Place(("source", "db")),
        "value.source.schema": Place(("source", "schema")),
        "value.source.table": Place(("source", "table")),
        "value.source.properties": Place(("source",), MapType(StringType(), StringType())),
    },
)
"""Debezium's envelope, whichever way it is encoded."""


def _changes(spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError for a column that JSON cannot carry, or whose values only a schema explains."""
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import EnvelopeDecoder
    from pyspark_upsert_kafka.formats.cdc.row_changes import read_before_after

    rows = [StructField("before", row_before(spec)), StructField("after", row_after(spec))]
    columns = StructType([*rows, *DEBEZIUM.columns(spec.metadata)])
    if spec.value.options[_INCLUDE]:
        decoder, read = _with_schemas(columns, spec), read_before_after(DEBEZIUM)
    else:
        decoder, read = _without_schemas(columns, spec), read_before_after(DEBEZIUM, _no_operation)
    return EnvelopeDecoder(spec, decoder, DEBEZIUM, read)


def _with_schemas(columns: StructType, spec: ChangeSpec) -> Decoder:
    """Decodes envelopes beside their schemas, which say what the values of the columns mean."""
    from pyspark_upsert_kafka.formats.cdc.connect_json import (
        AdvisedDecoder,
        SchemaDecoder,
    )

    payload = [column for column in columns if column.name != _SCHEMA]
    return SchemaDecoder(
        StructType(payload),
        lambda physical: AdvisedDecoder(json_decoder(physical.fields, spec), physical, None),
        lenient=spec.value.options["ignore-parse-errors"],
        schema_column=_SCHEMA if len(payload) < len(columns) else None,
        watching=(spec.value, partial(columns_of_row, required=spec.value.required)),
    )


def _columns_of_message(spec: CodecSpec, message: bytes) -> StructType | None:
    """The columns of the rows, as the schema of a message says; None = it has none.

    Raises:
        SchemaError: Messages are read without their schemas.
    """
    from pyspark_upsert_kafka.formats.cdc.connect_json import schema_in

    if not spec.options[_INCLUDE]:
        raise SchemaError(
            f"The columns of the table are not known: give them by .schema(...), or {_SEND}: then messages say them."
        )
    declared = schema_in(message)
    return None if declared is None else columns_of_row(declared, required=spec.required)


def columns_of_row(schema: ConnectSchema, required: frozenset[str]) -> StructType | None:
    """The columns of the rows in envelopes; None = the schema is that of no envelope.

    Args:
        schema: The schema of the envelopes.
        required: The columns of the primary key, which no row lacks.
    """
    from pyspark_upsert_kafka.formats.cdc.semantic_types import default_type

    row = schema.fields.get(DEBEZIUM.after)
    if row is None or row.type != "struct":
        return None
    found = default_type(row)
    return of_newest_schema(found, found.names, required) if isinstance(found, StructType) else None


def _without_schemas(columns: StructType, spec: ChangeSpec) -> Decoder:
    """Decodes envelopes alone; of values that only a schema explains, errors say what to set."""
    from pyspark_upsert_kafka.formats.cdc.connect_json import AdvisedDecoder

    unknown = _counts_unknown(spec.value.schema, _SEND)
    if unknown is not None:
        raise SchemaError(unknown)
    return AdvisedDecoder(json_decoder(columns.fields, spec), columns, _SEND)


def _no_operation(message: bytes) -> str:
    """What a message without ``op`` is, as the end of an error, where no schema is expected."""
    from pyspark_upsert_kafka.formats.json.json_document import parse_object

    if parse_object(message).keys() >= {_SCHEMA, _PAYLOAD}:
        return f"; it has a schema and a payload, which 'value.debezium-json.{_INCLUDE}' = 'true' reads"
    return ""


FORMAT = replace(
    json_format(
        "debezium-json",
        _changes,
        ("after", "before"),
        (
            Option(
                _INCLUDE,
                boolean,
                False,
                "Whether a message has its schema beside the envelope (`value.converter.schemas.enable` of Kafka Connect).",
            ),
            *OPTIONS,
        ),
    ),
    columns_of_message=_columns_of_message,
)


def _key_decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of keys. Raises as that of ``json`` does."""
    from pyspark_upsert_kafka.formats.cdc.connect_json import (
        AdvisedDecoder,
        SchemaDecoder,
    )

    with_schema = SchemaDecoder(
        spec.schema,
        lambda physical: json.decoder(replace(spec, schema=physical)),
        lenient=spec.options["ignore-parse-errors"],
    )
    unknown = _counts_unknown(spec.schema, _SEND_OF_KEYS)
    if unknown is not None:
        return _KeyDecoder(_UnknownCounts(spec.schema, unknown), with_schema)
    plain = AdvisedDecoder(json.decoder(spec), spec.schema, _SEND_OF_KEYS)
    return _KeyDecoder(plain, with_schema)


def _counts_unknown(columns: StructType, send: str) -> str | None:
    """What to do about columns whose numbers are read whatever they count; None = there are none.

    A number in an INTERVAL column of JSON is milliseconds, and no value shows that it was meant in another unit.

    Args:
        columns: The columns of the rows.
        send: What makes messages carry their schemas, as a part of a sentence.
    """
    for column in columns:
        if found := _interval_within(column.dataType):
            has = "is an" if found is column.dataType else "has an"
            return (
                f"Column '{column.name}' {has} {found.simpleString().upper()}, which Debezium sends as a number, as it does "
                "TIME, and only the schema says whether it counts milliseconds, microseconds or nanoseconds: "
                f"{send}, or declare it BIGINT (the unit follows from 'time.precision.mode' of the connector; of an "
                "INTERVAL it is microseconds)."
            )
    return None


def _interval_within(kind: DataType) -> DayTimeIntervalType | None:
    """The first interval in a type: an array of Postgres may have TIME as its elements."""
    if isinstance(kind, DayTimeIntervalType):
        return kind
    return next(filter(None, map(_interval_within, types_within(kind))), None)


@dataclass(frozen=True)
class _UnknownCounts:
    """Reads no message without a schema, since a column's numbers count what only a schema says.

    Args:
        columns: The columns of the messages.
        why: What to do.
    """

    columns: StructType
    why: str

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """An error for each message."""
        from pyspark_upsert_kafka.core.arrow import arrow_schema
        from pyspark_upsert_kafka.formats.batches import nulls

        rows = nulls(arrow_schema(self.columns), len(messages))
        return Decoded(rows, dict.fromkeys(range(len(messages)), self.why.rstrip(".")))


@dataclass(frozen=True)
class _KeyDecoder:
    """Decodes keys, some of which may have their schema around them."""

    plain: Decoder
    with_schema: Decoder

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """All keys. Raises TooManyMessagesError."""
        import numpy as np

        from pyspark_upsert_kafka.core.bytes_column import some_of
        from pyspark_upsert_kafka.formats.decoding import merge_by_position
        from pyspark_upsert_kafka.formats.json.json_document import are_envelopes

        around = are_envelopes(messages)
        if not around.any():
            return self.plain.decode(messages)
        if around.all():
            return self.with_schema.decode(messages)
        parts = ((around, self.with_schema), (~around, self.plain))
        places = [(np.flatnonzero(mask), decoder) for mask, decoder in parts]
        return merge_by_position([(at, d.decode(some_of(messages, at))) for at, d in places])


KEYS = replace(json.FORMAT, decoder=_key_decoder)

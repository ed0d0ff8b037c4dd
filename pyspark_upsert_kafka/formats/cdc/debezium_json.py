"""``debezium-json``: Debezium's envelopes in JSON, as Flink's format of this name reads them."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from pyspark.sql.types import StringType, StructField, StructType

from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import boolean
from pyspark_upsert_kafka.formats.cdc.json_envelopes import (
    OPTIONS,
    check,
    decoder,
    refuse,
    row_after,
    row_before,
    row_fields,
)
from pyspark_upsert_kafka.formats.change_format import ChangeDecoder, ChangeSpec
from pyspark_upsert_kafka.formats.codec import Format

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.codec import Decoder

_PAYLOAD, _SCHEMA = "payload", "schema"
_INCLUDE = "schema-include"
_SEND = (
    "let the connector send the schema ('value.converter.schemas.enable' = 'true') and set "
    f"'value.debezium-json.{_INCLUDE}' = 'true'"
)


def changes(spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError for a column that JSON cannot carry."""
    from pyspark_upsert_kafka.formats.cdc.before_after import read_before_after
    from pyspark_upsert_kafka.formats.cdc.debezium import DEBEZIUM, PLACES, WORDS
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import Envelope, EnvelopeDecoder
    from pyspark_upsert_kafka.formats.cdc.envelope_metadata import Place, fields_of, metadata_reader
    from pyspark_upsert_kafka.formats.cdc.operations import no_hint

    has_schema = spec.value.options[_INCLUDE]
    # Where no schema is around the envelope, it is looked for in the envelope, as Flink does; so it is NULL.
    places = {**PLACES, "value.schema": Place((_SCHEMA,))}
    of_payload = PLACES if has_schema else places
    fields = [
        StructField("before", row_before(spec)),
        StructField("after", row_after(spec)),
        StructField("op", StringType()),
        *fields_of(of_payload[key] for key in spec.metadata if key in of_payload),
    ]
    envelopes = _with_schemas(fields, spec) if has_schema else _without_schemas(fields, spec)
    read = read_before_after(DEBEZIUM, no_hint if has_schema else no_op)
    envelope = Envelope(envelopes, read, metadata_reader(places, spec.metadata), WORDS)
    return EnvelopeDecoder(spec, envelope, skip_bad=spec.value.options["ignore-parse-errors"])


def _with_schemas(fields: Sequence[StructField], spec: ChangeSpec) -> Decoder:
    """Decodes envelopes beside their schemas, which say what the values of the columns mean."""
    from pyspark_upsert_kafka.formats.debezium_types.connect_json import SchemaDecoder

    return SchemaDecoder(
        StructType([*fields]),
        lambda physical: decoder(physical.fields, spec),
        lenient=spec.value.options["ignore-parse-errors"],
        schema_column=_SCHEMA if "value.schema" in spec.metadata else None,
    )


def _without_schemas(fields: Sequence[StructField], spec: ChangeSpec) -> Decoder:
    """Decodes envelopes alone; of values that only a schema explains, errors say what to set."""
    from pyspark_upsert_kafka.formats.debezium_types.connect_json import AdvisedDecoder

    return AdvisedDecoder(decoder(fields, spec), StructType([*fields]), _SEND)


def no_op(message: bytes) -> str:
    """What a message without ``op`` is, as the end of an error, where no schema is expected."""
    if {_SCHEMA, _PAYLOAD} <= _keys(message):
        return f"; it has a schema and a payload, which 'value.debezium-json.{_INCLUDE}' = 'true' reads"
    return ""


def _keys(message: bytes) -> AbstractSet[str]:
    from pyspark_upsert_kafka.formats.json.document import parse_object

    return parse_object(message).keys()


FORMAT = Format(
    "debezium-json",
    (
        Option(
            _INCLUDE,
            boolean,
            False,
            "Whether a message has its schema beside the envelope (`value.converter.schemas.enable` of Kafka Connect).",
        ),
        *OPTIONS,
    ),
    refuse,
    refuse,
    check_decoder=check,
    fields=row_fields("after", "before"),
    changes=changes,
)

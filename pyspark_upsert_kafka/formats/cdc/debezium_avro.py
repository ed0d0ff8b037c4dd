"""``debezium-avro-confluent``: Debezium's envelopes in Avro whose messages name their schema, as Flink's format of this name reads them.

Beyond Flink, Debezium's types and Kafka Connect's, which the schema names, become the table's, also in keys of Avro.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.formats import avro_confluent
from pyspark_upsert_kafka.formats.cdc.debezium_json import DEBEZIUM
from pyspark_upsert_kafka.formats.cdc.envelope_format import refuse, row_after, row_before
from pyspark_upsert_kafka.formats.codec import ChangeDecoder, ChangeSpec, CodecSpec, Format
from pyspark_upsert_kafka.formats.debezium_types.connect_avro import decoder

_NAME = "debezium-avro-confluent"


def _envelope_spec(spec: ChangeSpec) -> CodecSpec:
    fields = [
        StructField("before", row_before(spec)),
        StructField("after", row_after(spec)),
        *DEBEZIUM.columns(),
    ]
    return replace(spec.value, schema=StructType(fields), required=frozenset())


def _changes(envelopes: Format, spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError or OptionError as that of ``avro-confluent`` does."""
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import EnvelopeDecoder
    from pyspark_upsert_kafka.formats.cdc.row_changes import read_before_after

    decoded = envelopes.decoder(_envelope_spec(spec))
    return EnvelopeDecoder(spec, decoded, DEBEZIUM, read_before_after(DEBEZIUM))


def _check(envelopes: Format, row: CodecSpec) -> None:
    """Raises what compiling the decoder of envelopes around such rows raises."""
    envelopes.decoder(_envelope_spec(ChangeSpec(row, is_keyed=False)))


def _newest_schema(envelopes: Format, row: CodecSpec) -> str:
    """The subject of the newest schema; raises as that of ``avro-confluent`` does."""
    if envelopes.newest_schema is None:
        raise ValueError("The format of envelopes has a registry.")
    return envelopes.newest_schema(_envelope_spec(ChangeSpec(row, is_keyed=False)))


def _completed(envelopes: Format) -> Format:
    """The format, from one that reads its envelopes as rows with a registry."""
    return Format(
        _NAME,
        envelopes.options,
        refuse,
        refuse,
        check_decoder=partial(_check, envelopes),
        newest_schema=partial(_newest_schema, envelopes),
        with_schema_ids=envelopes.with_schema_ids,
        changes=partial(_changes, envelopes),
    )


KEYS, REGISTRY_KEYS = (
    replace(format_, decoder=decoder)
    for format_ in (avro_confluent.FORMAT, avro_confluent.AVRO_REGISTRY)
)
"""Keys of Avro beside Debezium's values, under both names of their format."""

FORMAT = replace(
    KEYS, name=_NAME, encoder=partial(avro_confluent.encoder, _NAME), complete=_completed
)

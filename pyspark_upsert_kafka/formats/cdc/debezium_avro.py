"""``debezium-avro-confluent``: Debezium's envelopes in Avro whose messages name their schema, as Flink's format of this name reads them.

Beyond Flink, Debezium's types and Kafka Connect's, which the schema names, become the table's.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql.types import StringType, StructField, StructType

from pyspark_upsert_kafka.formats.avro_confluent import columns, encoder
from pyspark_upsert_kafka.formats.cdc.json_envelopes import refuse, row_after, row_before
from pyspark_upsert_kafka.formats.change_format import ChangeDecoder, ChangeSpec
from pyspark_upsert_kafka.formats.codec import CodecSpec, Format
from pyspark_upsert_kafka.formats.debezium_types.connect_avro import decoder
from pyspark_upsert_kafka.formats.registry_format import RegistryFormat

_NAME = "debezium-avro-confluent"


def _envelope_spec(spec: ChangeSpec) -> CodecSpec:
    fields = [
        StructField("before", row_before(spec)),
        StructField("after", row_after(spec)),
        StructField("op", StringType()),
    ]
    return replace(spec.value, schema=StructType(fields), required=frozenset())


def _changes(envelopes: Format, spec: ChangeSpec) -> ChangeDecoder:
    """Compiles the decoder. Raises SchemaError or OptionError as that of ``avro-confluent`` does."""
    from pyspark_upsert_kafka.formats.cdc.before_after import read_before_after
    from pyspark_upsert_kafka.formats.cdc.debezium import DEBEZIUM, WORDS
    from pyspark_upsert_kafka.formats.cdc.envelope_decoder import Envelope, EnvelopeDecoder

    envelope = Envelope(
        envelopes.decoder(_envelope_spec(spec)), read_before_after(DEBEZIUM), lambda _: {}, WORDS
    )
    return EnvelopeDecoder(spec, envelope)


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
        changes=partial(_changes, envelopes),
    )


FORMAT = RegistryFormat(
    _NAME, "AVRO", "an Avro schema", decoder, partial(encoder, _NAME), columns, complete=_completed
)

"""Which formats there are; one whose messages name their schema gets its registry here."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options import Option
from pyspark_upsert_kafka.core.table.cdc_formats import CDC_FORMATS
from pyspark_upsert_kafka.formats.codec import Format
from pyspark_upsert_kafka.formats.registry_format import RegistryFormat

MODULES = {
    "avro": "avro",
    "avro-confluent": "avro_confluent",
    "avro-registry": "avro_confluent",
    "canal-json": "cdc.canal_json",
    "csv": "csv",
    "debezium-avro-confluent": "cdc.debezium_avro",
    "debezium-json": "cdc.debezium_json",
    "json": "json",
    "json-registry": "json_registry",
    "maxwell-json": "cdc.maxwell_json",
    "ogg-json": "cdc.ogg_json",
    "proto-registry": "proto_registry",
    "protobuf": "protobuf",
    "raw": "raw",
}
"""Where each format is in ``formats/``, by its name: a new one gets a line here; ``formats/codec.py`` says what it has."""

_ALIASES = {"avro-registry": "AVRO_REGISTRY"}
"""Other names of a format, and what its module calls it under them; all others it calls FORMAT."""

FORMATS = tuple(sorted(MODULES))
"""Names for ``key.format`` and ``value.format``."""


def format_named(name: str, side: str) -> Format:
    """The format of that name; its module is loaded only now.

    Raises:
        OptionError: There is no such format, or it is a CDC format, which keys have none of. The wording for this is that
            of Flink's ``UpsertKafkaDynamicTableFactory``.
    """
    if name in CDC_FORMATS and side == "key":
        raise OptionError(
            f"'upsert-kafka' connector doesn't support '{name}' as {side} format, because '{name}' "
            "is not in insert-only mode."
        )
    if name not in MODULES:
        near = get_close_matches(name.lower(), FORMATS, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise OptionError(
            f"Unknown {side} format '{name}' in option '{side}.format'.{hint} "
            f"Known formats: {', '.join(FORMATS)}."
        )
    module = import_module(f"pyspark_upsert_kafka.formats.{MODULES[name]}")
    declared: Format | RegistryFormat = getattr(module, _ALIASES.get(name, "FORMAT"))
    if isinstance(declared, RegistryFormat):
        from pyspark_upsert_kafka.registry.framing import framed

        return framed(declared)
    return declared


def format_options(name: str, side: str) -> tuple[Option, ...]:
    """The options that a format declares.

    Raises:
        OptionError: There is no such format.
    """
    return format_named(name, side).options

"""Which formats there are; one whose messages name their schema gets its registry here."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS, DEBEZIUM_FORMATS
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.formats.codec import Format
from pyspark_upsert_kafka.formats.registry_format import RegistryFormat

MODULES = {
    "avro": "avro",
    "avro-confluent": "avro_confluent",
    "avro-glue": "avro_confluent",
    "avro-registry": "avro_confluent",
    "canal-json": "cdc.canal_json",
    "csv": "csv",
    "debezium-avro-confluent": "cdc.debezium_avro",
    "debezium-json": "cdc.debezium_json",
    "json": "json",
    "json-glue": "json_registry",
    "json-registry": "json_registry",
    "maxwell-json": "cdc.maxwell_json",
    "ogg-json": "cdc.ogg_json",
    "proto-registry": "proto_registry",
    "protobuf": "protobuf",
    "protobuf-glue": "proto_registry",
    "raw": "raw",
}
"""Where each format is in ``formats/``, by its name: a new one gets a line here; ``formats/codec.py`` says what it has."""

_ALIASES = {
    "avro-registry": "AVRO_REGISTRY",
    "avro-glue": "AVRO_GLUE",
    "json-glue": "JSON_GLUE",
    "protobuf-glue": "PROTOBUF_GLUE",
}
"""Other names of a format, and what its module calls it under them; all others it calls FORMAT."""

_KEYS_OF_CONNECT = {
    "json": ("cdc.debezium_json", "KEYS"),
    "avro-confluent": ("cdc.debezium_avro", "KEYS"),
    "avro-registry": ("cdc.debezium_avro", "REGISTRY_KEYS"),
}
"""Formats of keys that mean more beside Debezium's values: where each is, and what it is called there."""

_REGISTRIES = {
    "confluent": ("framing", "REGISTRY"),
    "glue": ("glue_framing", "REGISTRY"),
    "glue beside glue": ("glue_framing", "OF_KEYS"),
}
"""Where each kind of registry is in ``registry/``, and what it is called there."""

_GLUE = ("avro-glue", "json-glue", "protobuf-glue")
"""Formats whose schema has the topic's name, if nothing else is said: of key and value only one can."""

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
    return _loaded(MODULES[name], _ALIASES.get(name, "FORMAT"))


def _loaded(module: str, name: str, kind: str | None = None) -> Format:
    loaded = import_module(f"pyspark_upsert_kafka.formats.{module}")
    declared: Format | RegistryFormat = getattr(loaded, name)
    if isinstance(declared, RegistryFormat):
        from pyspark_upsert_kafka.registry.registered_format import Registry

        place, called = _REGISTRIES[kind or declared.registry]
        found = import_module(f"pyspark_upsert_kafka.registry.{place}")
        registry: Registry = getattr(found, called)
        return registry.completed(declared)
    return declared


def key_format_beside(value_format: str, name: str) -> Format:
    """The format of keys that stand beside values of a format. Raises as `format_named` does."""
    if name in _GLUE and value_format in _GLUE:
        return _loaded(MODULES[name], _ALIASES[name], "glue beside glue")
    if name not in _KEYS_OF_CONNECT or value_format not in DEBEZIUM_FORMATS:
        return format_named(name, "key")
    return _loaded(*_KEYS_OF_CONNECT[name])


def format_options(name: str, side: str) -> tuple[Option, ...]:
    """The options that a format declares.

    Raises:
        OptionError: There is no such format.
    """
    return format_named(name, side).options

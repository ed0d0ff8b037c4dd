"""Short ways to compile the ``avro-confluent`` codecs of a table."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder
from pyspark_upsert_kafka.registry import options
from pyspark_upsert_kafka.registry.options import OPTIONS, RegistrySettings
from tests.unit.formats.listed import Listed

FORMAT = format_named("avro-confluent", "value")


def parsed(given: dict[str, str], side: str = "value") -> dict[str, Any]:
    """The options as a query has them."""
    prefix = f"{side}.avro-confluent."
    raw = {prefix + name: text for name, text in given.items()}
    return {option.name: option.read(raw, prefix) for option in OPTIONS}


def spec(
    given: dict[str, str],
    schema: StructType | None = None,
    side: str = "value",
    topics: tuple[str, ...] = ("orders",),
    required: frozenset[str] = frozenset(),
) -> CodecSpec:
    """One side of a table over the topic ``orders``."""
    return CodecSpec(schema or StructType(), side, parsed(given, side), topics, required)


def settings_of(side: CodecSpec) -> RegistrySettings:
    """The settings of a side that has this format."""
    return options.settings_of(side, FORMAT.name)


def settings(given: dict[str, str], side: str = "value") -> RegistrySettings:
    """The settings that these options mean."""
    return settings_of(spec({"url": "http://registry:8081", **given}, side=side))


def encoder(url: str, schema: StructType, **more: Any) -> Listed:
    """An encoder; options by their names in a dict, ``options``."""
    return Listed(FORMAT.encoder(spec({"url": url, **more.pop("options", {})}, schema, **more)))


def decoder(url: str, schema: StructType, **more: Any) -> Decoder:
    """A decoder; options by their names in a dict, ``options``."""
    return FORMAT.decoder(spec({"url": url, **more.pop("options", {})}, schema, **more))

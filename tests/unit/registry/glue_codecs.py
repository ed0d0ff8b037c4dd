"""Short ways to compile the codecs of the formats with a registry of AWS Glue."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.format_catalog import format_named, key_format_beside
from pyspark_upsert_kafka.formats.codec import CodecSpec, Format, Side

NAMES = ("avro-glue", "json-glue", "protobuf-glue")


def side(
    name: str,
    columns: StructType,
    url: str | None = None,
    *,
    of: str = "value",
    beside: str | None = None,
    topics: tuple[str, ...] = ("orders",),
    **given: str,
) -> Side:
    """One side of a table over the topic ``orders``; options by their names, with ``_`` for each point."""
    format_ = format_named(name, of) if beside is None else key_format_beside(beside, name)
    return Side(format_, _spec(format_, columns, of, topics, {"endpoint": url, **given}))


def _spec(format_: Format, columns: StructType, of: str, topics: Any, given: Any) -> CodecSpec:
    prefix = f"{of}.{format_.name}."
    texts = {
        (prefix + name.replace("_", ".")).lower(): text
        for name, text in given.items()
        if text is not None
    }
    options = {option.name: option.read(texts, prefix) for option in format_.options}
    return CodecSpec(columns, of, options, topics)

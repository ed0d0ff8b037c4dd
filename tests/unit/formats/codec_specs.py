"""What codecs are compiled from, with the defaults that a query's options have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.codec import CodecSpec, Format


def codec_spec(
    format_: Format, schema: StructType, side: str = "value", given: Mapping[str, Any] = {}, **more
) -> CodecSpec:
    """A spec with these values of the format's options, by their names, and the defaults of the others."""
    values = {option.name: option.default for option in format_.options}
    return CodecSpec(schema, side, {**values, **given}, **more)

"""Short ways to compile the codecs of formats whose messages name their schema, without a registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoded, Decoder
from pyspark_upsert_kafka.formats.registry_format import (
    Reference,
    RegisteredSchema,
    RegistryFormat,
    SchemaEncoder,
)
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.listed import Listed, good_rows

PREFIX = b"\0\0\0\0\7"
"""What stands before each message here: the schema's id is 7."""


@dataclass(frozen=True)
class Codecs:
    """The codecs of one format, with options by their names."""

    format: RegistryFormat

    def spec(self, schema: StructType, options: dict[str, Any], **more: Any) -> CodecSpec:
        """A side of a table."""
        return codec_spec(self.format, schema, given=options, **more)

    def writing(self, schema: StructType, given: str | None = None, **more: Any) -> SchemaEncoder:
        """What writes a side, with the schema that is registered."""
        options = more.pop("options", {})
        spec = self.spec(schema, options, **more)
        return self.format.encoder(spec, self.format.given(spec.side, given))

    def write(
        self, schema: StructType, rows: pa.RecordBatch, given: str | None = None, **more: Any
    ) -> list[bytes]:
        """The messages of some rows."""
        writing = self.writing(schema, given, **more)
        return Listed(writing.with_prefix(PREFIX + writing.after_id)).encode(rows)

    def decoder(
        self, schema: StructType, text: str, given: str | None = None, **more: Any
    ) -> Decoder:
        """What reads messages of a schema with this text."""
        options = more.pop("options", {})
        references = tuple(Reference(*each) for each in more.pop("references", ()))
        kind = more.pop("kind", self.format.schema_type)
        spec = self.spec(schema, options, **more)
        given_one = self.format.given(spec.side, given)
        of_schema = self.format.decoder(spec, given_one)
        registered = RegisteredSchema("Schema id 7", kind, text, references)
        self.format.check_type(registered)
        return of_schema(registered, len(PREFIX))

    def read(
        self,
        schema: StructType,
        messages: list[bytes],
        text: str,
        given: str | None = None,
        **more: Any,
    ) -> Decoded:
        """What messages of a schema with this text give."""
        return self.decoder(schema, text, given, **more).decode(messages)

    def columns(self, text: str, **options: Any) -> StructType:
        """The columns that a schema gives."""
        schema = RegisteredSchema("Schema id 7", self.format.schema_type, text)
        return self.format.columns(schema, self.spec(StructType(), options), None)


def rows_of(decoded: Decoded) -> list[tuple[Any, ...]]:
    """The rows of messages that can all be read."""
    assert not decoded.errors
    return [tuple(row.values()) for row in good_rows(decoded).to_pylist()]

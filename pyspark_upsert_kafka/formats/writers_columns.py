"""What the schemas of messages say beyond the columns that are read: whoever reads may look at each schema before it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pyspark_upsert_kafka.core.errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoded, Decoder


@dataclass(frozen=True)
class WrittenSchema:
    """A schema that messages were written with.

    Args:
        origin: What it is called in errors: ``Schema id 7``.
        subject: The registry's subject whose newest schema gives a table's columns; None = there is no registry.
        columns: The columns that it gives.
    """

    origin: str
    subject: str | None
    columns: StructType


Watch = Callable[[WrittenSchema], bool]
"""Called with a schema before the first of its messages is decoded; says whether it wants to be called again before each next
batch of them, and raises `SchemaStopError`."""


class SchemaStopError(Exception):
    """Messages of a schema must not be decoded: whoever reads ends.

    Args:
        side: Whether they are keys or values.
        error: From topic, partition and offset of the first such message the error that is raised.

    Attributes:
        message: The first of the messages that has the schema.
    """

    def __init__(self, side: str, error: Callable[[str, int, int], Exception]) -> None:
        super().__init__(side, error)
        self.side, self.error = side, error
        self.message = b""

    def at(self, message: bytes) -> NoReturn:
        """Raises it again, for a message as it was before what stands around it was taken off."""
        self.message = message
        raise self


def watched(
    spec: CodecSpec,
    origin: str,
    subject: Callable[[], str | None],
    columns: Callable[[CodecSpec, str | None], StructType],
    compiled: Callable[[], Decoder],
) -> Decoder:
    """The decoder of messages of a schema, once whoever reads has looked at that.

    Args:
        spec: The side that is read.
        origin: What the schema is called.
        subject: The subject of the side.
        columns: The columns that the schema gives, as `Format.columns` says them; raises SchemaError.
        compiled: Compiles the decoder.

    Raises:
        SchemaStopError: Its messages must not be decoded.
    """
    watch = spec.watch
    if watch is None:
        return compiled()
    names = spec.schema.names
    try:
        found = columns(spec, names[0] if spec.side == "key" and len(names) == 1 else None)
    except SchemaError:
        return compiled()  # nobody knows which columns it means
    schema = WrittenSchema(origin, subject(), found)
    again = watch(schema)
    decoder = compiled()
    return _WatchedDecoder(decoder, watch, schema) if again else decoder


@dataclass
class _WatchedDecoder:
    """Decodes messages of a schema at which whoever reads wants to look again."""

    decoder: Decoder
    watch: Watch | None
    schema: WrittenSchema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        if self.watch is not None and messages:
            try:
                self.watch = self.watch if self.watch(self.schema) else None
            except SchemaStopError as stop:
                stop.at(messages[0])
        return self.decoder.decode(messages)

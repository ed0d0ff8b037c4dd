r"""The seam of the formats: what a format must implement, and what all others know of it.

A format is a module or a folder beside this one with a ``FORMAT``, and a line in ``format_catalog.py``. It has two
functions: from a `CodecSpec` they compile a `Decoder` and an `Encoder`, once per query and side, which then turn
many messages at a time into rows and back. Neither knows of topics, offsets or Spark: messages are bytes, rows are
Arrow. What a format cannot carry is refused while it is compiled. Nothing else is demanded.

A decoder need not be fast to be right: the row path is enough, a function from one message to its values, which
``decoding.RowPath`` makes a decoder of. This is a whole format, of texts with tabs between them:

>>> import pyarrow as pa
>>> from pyspark_upsert_kafka.core.arrow import arrow_schema
>>> from pyspark_upsert_kafka.formats.decoding import RowField, RowPath, UnreadableError
>>> def decoder(spec):
...     fields = [RowField(c.name, c.nullable).reader(str, repr) for c in spec.schema.fields]
...     def row(message):
...         texts = message.decode(errors="replace").split("\t")
...         if len(texts) != len(fields):
...             raise UnreadableError(f"expected {len(fields)} fields, got {len(texts)}")
...         return [field(text or None) for field, text in zip(fields, texts)]
...     return RowPath(row, arrow_schema(spec.schema))
>>> class TabsEncoder:
...     def encode(self, rows):
...         texts = ["\t".join(v or "" for v in row.values()) for row in rows.to_pylist()]
...         return pa.array([text.encode() for text in texts], pa.large_binary())
>>> FORMAT = Format("tabs", (), decoder, encoder=lambda spec: TabsEncoder())

What other modules of this folder have for a format that wants more:

- ``decoding``: `RowField` for NULL, NOT NULL and errors that name the field; decoders that try a vectorised path, and
  read by the row path what it leaves.
- ``decoded_size``: a limit on memory, for formats of which a few bytes may be decoded to very much.
- ``parsed_columns``: columns of parsed values (dictionaries, lists, numbers), for a format whose messages a library parses.
- ``leaf_types``, ``text_values``, ``text_columns``, ``timestamp_text``: values as text.
- ``binary_values``: the bytes of many messages, read and written together.
- ``registry_format``: the seam of formats whose messages name their schema; it takes the place of this one's `Format`.

A CDC format, whose messages say what they did to a row, has ``changes``: from a `ChangeSpec` that compiles a `ChangeDecoder`. A
message gives any number of rows: an update gives the row before and the row after it, a message may hold several rows of a
table, and some messages give none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.properties import Properties

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pyspark_upsert_kafka.core.bytes_column import BytesColumn
    from pyspark_upsert_kafka.formats.writers_columns import Watch


@dataclass(frozen=True)
class CodecSpec:
    """What a format compiles a codec from.

    Args:
        schema: The columns of this side (key or value), in the order of the message, under their
            names in the message.
        side: ``key`` or ``value``.
        options: The value of each of the format's own options, given or default, by its unprefixed name.
        topics: Topics of the table, for what depends on them (registry subjects).
        required: The columns of the primary key, under their names in the message: they are never NULL,
            even where the schema calls them nullable.
        client: The properties of the Kafka client, for a registry that takes the client's own login.
        record_names: The record types that are read, as the user names them; empty = all.
        watch: Looks at each schema that messages name, when it is new; None = nobody does.
        prefix: What stands before the names of the format's own options where a user writes them.
        ends_at_bad: Whether reading ends at the first message that cannot be decoded: nobody need look up the schemas of those
            behind it, and each of them may be called bad.
    """

    schema: StructType
    side: Literal["key", "value"]
    options: Mapping[str, Any] = field(repr=False)  # some are secret
    topics: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    client: Properties = field(default_factory=lambda: Properties({}))
    record_names: tuple[str, ...] = ()
    watch: Watch | None = field(default=None, compare=False, repr=False)
    prefix: str = ""
    ends_at_bad: bool = False


@dataclass(frozen=True)
class Decoded:
    """Some messages, decoded.

    Args:
        rows: A row for each message, in exactly the Arrow schema of the spec's columns (types and nested nullability). That
            of a message which is bad or skipped is NULL in all columns, NOT NULL ones too.
        errors: Index of each message that could not be read, and why.
        skipped: Indexes of the messages that the format's own ``ignore-parse-errors`` passes over.
    """

    rows: pa.RecordBatch
    errors: Mapping[int, str] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()

    @property
    def read(self) -> Any:
        """For each message whether it was read, so that its row is its own: it is neither bad nor skipped."""
        import numpy as np

        read = np.ones(self.rows.num_rows, np.bool_)
        read[[*self.errors, *self.skipped]] = False
        return read


class TooManyMessagesError(Exception):
    """The rows of the messages would be too large together; at most ``most`` messages can be decoded at once."""

    def __init__(self, most: int) -> None:
        super().__init__(f"at most {most} messages can be decoded at once")
        self.most = most


class Decoder(Protocol):
    """Turns messages of one side into rows."""

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of some messages, none of which is null. No message makes this raise: a bad one is an error in the result.

        Raises:
            TooManyMessagesError: The rows are much larger than their messages, as with arrays of wide structs that
                are all NULL, or with long defaults.
        """


class Encoder(Protocol):
    """Turns rows of one side into messages."""

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        """One message for each row, none of them null; equal rows give equal bytes.

        In a key, -0.0 comes as 0.0, and each NaN as the same.

        Raises:
            EncodeError: A value cannot be written; it names the column.
        """


@runtime_checkable
class HeaderEncoder(Encoder, Protocol):
    """An encoder whose messages need a header beside their bytes."""

    def header(self) -> tuple[str, bytes]:
        """Name and value of the header of each message, those that are null excepted; known once rows were encoded."""


SchemaColumns = Callable[[CodecSpec, str | None], "StructType | None"]
"""The columns that a format's own schema gives a side whose columns are not known yet; None = no schema is given.

A schema without named fields can give a single column, whose name is the second argument; where that is None,
such a schema raises SchemaError.
"""


WithSchemaIds = Callable[
    [str, "BytesColumn", "BytesColumn"], tuple["BytesColumn", Mapping[int, str]]
]
"""From a side, its messages, and a header of each, None where it has none: messages, and what is wrong with which header."""


@dataclass(frozen=True)
class RecordType:
    """The record type of a message, as the schema says it that the message was written with.

    Args:
        name: Its full name; empty = the schema gives none.
        fields: The names of its fields; None = it may have any, or is no record.
    """

    name: str
    fields: frozenset[str] | None = None


@dataclass(frozen=True)
class Records:
    """The record types of the messages of a schema.

    Args:
        all: The types.
        of_message: Tells which one a message has, by what stands behind the schema's id; None = there is one only.
    """

    all: tuple[RecordType, ...]
    of_message: RecordTypes | None = None


RecordTypes = Callable[[bytes, bool], "RecordType | int | None"]
"""From what some messages begin with, and whether this is all of them: their record type; a number = it takes so many of their
first bytes to tell, which is no answer where it is all; None = not known, since these messages cannot be decoded."""


@dataclass(frozen=True)
class Format:
    """A format: its options and how to compile its two codecs.

    Args:
        name: As in ``key.format`` and ``value.format``.
        options: The format's own options, by their unprefixed names.
        decoder: Compiles a decoder; raises SchemaError or OptionError for what it cannot read.
        encoder: Compiles an encoder; raises SchemaError or OptionError for what it cannot write.
        columns: The columns that the format's own schema gives, for a table whose user gives none; None =
            the format has no schema.
        check_decoder: Raises what compiling the decoder would raise, at less cost; None = the decoder is compiled for it.
        check_encoder: The same for the encoder.
        fields: The fields of a message that can be read, with their values, for the warning about columns that no message has;
            None = messages of the format do not name their fields.
        newest_schema: Asks a schema registry for the newest schema of a side, and compiles the decoder of its messages; gives
            the schema's subject. It raises NoSchemaError if there is none, SchemaError if it cannot be read into the columns,
            and BrokerError if the registry does not answer. None = the format has no registry.
        with_schema_ids: Makes of messages, and the values of the header that names their schema, messages that the decoder
            reads, and says why headers are wrong, by the index of the message. None = no header names schemas.
        id_is_seen: Whether no message begins as one with an id does, unless it has one: its header need not be looked for then.
        changes: Compiles the decoder of a CDC format, whose ``decoder`` and ``encoder`` only refuse; None = it is none.
        record_types: Gives, for a side, what tells the record types of its messages; None = messages do not say which they are of.
        columns_of_message: The columns that a message's own schema gives, for a table whose user gives none; None = this one says
            nothing. It raises SchemaError where the options do not let messages have schemas. None = messages have none.
    """

    name: str
    options: tuple[Option, ...]
    decoder: Callable[[CodecSpec], Decoder]
    encoder: Callable[[CodecSpec], Encoder]
    columns: SchemaColumns | None = None
    check_decoder: Callable[[CodecSpec], object] | None = None
    check_encoder: Callable[[CodecSpec], object] | None = None
    fields: Callable[[bytes], Mapping[str, Any]] | None = None
    newest_schema: Callable[[CodecSpec], str] | None = None
    with_schema_ids: WithSchemaIds | None = None
    id_is_seen: bool = False
    changes: Callable[[ChangeSpec], ChangeDecoder] | None = None
    record_types: Callable[[CodecSpec], RecordTypes] | None = None
    columns_of_message: Callable[[CodecSpec, bytes], StructType | None] | None = None


@dataclass(frozen=True)
class Side:
    """A side of a table, key or value, with its format.

    Args:
        format: The format.
        spec: What its codecs are compiled from.
    """

    format: Format
    spec: CodecSpec

    def decoder(self) -> Decoder:
        """Compiles the decoder. Raises SchemaError or OptionError."""
        return self.format.decoder(self.spec)

    def ending_at_bad(self) -> Side:
        """The same, read until the first message that cannot be decoded: see `CodecSpec`."""
        return replace(self, spec=replace(self.spec, ends_at_bad=True))

    def change_decoder(self, changes: ChangeSpec) -> ChangeDecoder:
        """Compiles the decoder of a CDC format. Raises SchemaError or OptionError."""
        if self.format.changes is None:
            raise ValueError(f"'{self.format.name}' is no CDC format.")
        return self.format.changes(changes)

    def encoder(self) -> Encoder:
        """Compiles the encoder. Raises SchemaError or OptionError."""
        return self.format.encoder(self.spec)

    def check_decoder(self) -> None:
        """Raises the SchemaError or OptionError that compiling the decoder would raise."""
        (self.format.check_decoder or self.format.decoder)(self.spec)

    def check_encoder(self) -> None:
        """Raises the SchemaError or OptionError that compiling the encoder would raise."""
        (self.format.check_encoder or self.format.encoder)(self.spec)


@dataclass(frozen=True)
class ChangeSpec:
    """What a CDC format compiles a decoder from.

    Args:
        value: The columns of the row, and the format's options.
        is_keyed: Whether the table has a primary key: changes are then upserts and deletes; otherwise they are shown as rows
            before and after each change.
        key: The columns of the primary key among those of the row; empty = the row has none of them.
        reads_key: Whether the key of messages is read too, which then names the row where the value does not.
        metadata: The keys of the format's metadata that are shown.
    """

    value: CodecSpec
    is_keyed: bool
    key: tuple[str, ...] = ()
    reads_key: bool = False
    metadata: tuple[str, ...] = ()


@dataclass(frozen=True)
class DecodedChanges:
    """Some messages, decoded.

    Args:
        rows: The rows in the order of the messages, in the Arrow types of the spec's columns; all are nullable. A delete of a
            table with a primary key has its key columns, and NULL elsewhere.
        places: The index of each row's message; it rises, and occurs as often as its message has rows.
        kinds: The `Change` of each row.
        metadata: For each wanted key of metadata its value for each row, in the first of its types.
        errors: Index of each message that could not be read, and why; it has no rows.
        skipped: Indexes of the messages that the format's own ``ignore-parse-errors`` passes over.
        passed_over: Index of each message that is no change of a row, such as a change of the table's schema, and what it is.
    """

    rows: pa.RecordBatch
    places: Any
    kinds: Any
    metadata: Mapping[str, pa.Array] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()
    passed_over: Mapping[int, str] = field(default_factory=dict)


class ChangeDecoder(Protocol):
    """Turns messages into the rows that they changed."""

    def decode(self, messages: Sequence[bytes]) -> DecodedChanges:
        """The changes of some messages, none of which is null. No message makes this raise: a bad one is an error in the result.

        Raises:
            TooManyMessagesError: The rows are much larger than their messages.
        """

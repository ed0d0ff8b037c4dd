"""CSV, as Flink's ``csv`` format reads and writes it: one record per message.

Names, meaning and defaults of options are those of Flink's ``CsvFormatOptions``.
What compiles and runs the codecs is imported by the tasks that use them, not where a query is planned.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import any_text, boolean
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.leaf_types import TEXT_TYPES

_SINGLE = "Option '{name}' must be a string with single character, but was: {seen}."
_JAVA_ESCAPE = re.compile(r"\\(?:u+([0-9a-fA-F]{4})|([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_JAVA_CONTROL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LINE_BREAKS = "\r\n"
# What Jackson reads after an escape character as something else; doubled, these would be lost.
_LETTERS_OF_ESCAPES = "0nrt"


def _character(value: str) -> str:
    """One UTF-16 unit, as Flink's ``CsvCommons.validateFormatOptions`` demands."""
    if len(value.encode("utf-16-be")) != 2:
        raise ValueError("expected one character")
    return value


def _escaped_character(value: str) -> str:
    r"""One character, which may be written as an escape of Java.

    >>> _escaped_character(r"\t") == _escaped_character(r"\u0009") == "\t"
    True
    """
    return _character(_JAVA_ESCAPE.sub(_unescaped, value))


def _unescaped(match: re.Match[str]) -> str:
    unicode, octal, other = match.groups()
    if other is not None:
        return _JAVA_CONTROL.get(other, str(other))
    return chr(int(unicode, 16) if unicode else int(octal, 8))


OPTIONS = (
    Option(
        "field-delimiter",
        _escaped_character,
        ",",
        "The character between two fields; Java's escapes, such as \\t, are allowed.",
        complaint=_SINGLE,
    ),
    Option(
        "quote-character",
        _character,
        None,
        "The character that encloses a field with special characters.",
        shown_default='"',
        complaint=_SINGLE,
    ),
    Option("disable-quote-character", boolean, False, "Fields are never enclosed by quotes."),
    Option("allow-comments", boolean, False, "Skip lines that begin with '#'."),
    Option(
        "ignore-parse-errors",
        boolean,
        False,
        "A field that cannot be read is NULL, and a message that is not a record is skipped.",
    ),
    Option(
        "array-element-delimiter",
        _character,
        ";",
        "The character between the elements of an array or a struct within a field.",
        complaint=_SINGLE,
    ),
    Option(
        "escape-character",
        _character,
        None,
        "The character that escapes the next character.",
        complaint=_SINGLE,
    ),
    Option("null-literal", any_text, None, "The text of a field that is NULL."),
    Option(
        "write-bigdecimal-in-scientific-notation",
        boolean,
        False,  # Flink's documentation says true, but Flink writes so only when it is given
        "Write decimals in the shortest form (1E+2), not in full (100.00).",
    ),
)


@dataclass(frozen=True)
class Dialect:
    """What the options of one side say; see OPTIONS for their meaning. Without a quote: None."""

    delimiter: str
    quote: str | None
    escape: str | None
    array_delimiter: str
    null_literal: str | None
    allow_comments: bool
    ignore_parse_errors: bool
    scientific_decimals: bool
    is_key: bool

    @property
    def special(self) -> str:
        """What a field cannot hold unless it is quoted."""
        comment = "#" if self.allow_comments else ""
        return f"{self.delimiter}{self.quote or ''}{self.escape or ''}{comment}{_LINE_BREAKS}"


def dialect_of(spec: CodecSpec) -> Dialect:
    """The dialect of a side.

    Raises:
        OptionError: Two options contradict each other.
    """
    value = spec.options
    quote = value["quote-character"]
    if value["disable-quote-character"] and quote is not None:  # the wording is Flink's
        raise OptionError(
            "Format cannot define a quote character and disabled quote character at the same time."
        )
    dialect = Dialect(
        delimiter=value["field-delimiter"],
        quote=None if value["disable-quote-character"] else quote or '"',
        escape=value["escape-character"],
        array_delimiter=value["array-element-delimiter"],
        null_literal=value["null-literal"],
        allow_comments=value["allow-comments"],
        ignore_parse_errors=value["ignore-parse-errors"],
        scientific_decimals=value["write-bigdecimal-in-scientific-notation"],
        is_key=spec.side == "key",
    )
    _check_characters(dialect)
    _check_null_literal(dialect)
    return dialect


def _check_characters(dialect: Dialect) -> None:
    """Flink lets these pass and then writes what it cannot read."""
    if dialect.delimiter in (dialect.quote, dialect.escape):
        raise OptionError(
            f"Option 'field-delimiter' is {dialect.delimiter!r}, which is the quote or the escape "
            "character too."
        )
    taken = _LINE_BREAKS + ("#" if dialect.allow_comments else "")
    for name, character in (
        ("field-delimiter", dialect.delimiter),
        ("quote-character", dialect.quote),
        ("escape-character", dialect.escape),
    ):
        if character and character in taken:
            raise OptionError(f"Option '{name}' cannot be {character!r}: it has another meaning.")

    if dialect.escape and dialect.escape in _LETTERS_OF_ESCAPES:
        raise OptionError(
            f"Option 'escape-character' cannot be {dialect.escape!r}: after another escape character "
            "it stands for a control character."
        )


def _check_null_literal(dialect: Dialect) -> None:
    literal = dialect.null_literal or ""
    if dialect.quote is None and any(character in dialect.special for character in literal):
        raise OptionError(
            f"Option 'null-literal' is {literal!r}, which would need the quote character that "
            "'disable-quote-character' took away."
        )


def check(spec: CodecSpec) -> Dialect:
    """The dialect of one side that can be read and written.

    Raises:
        SchemaError: CSV cannot carry a column.
        OptionError: Two options contradict each other.
    """
    dialect = dialect_of(spec)
    check_columns(spec.schema)
    return dialect


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side. Raises as `check` does."""
    from pyspark_upsert_kafka.formats.csv.column_paths import (
        compile_column_path,
        compile_vectorised_path,
    )
    from pyspark_upsert_kafka.formats.csv.row_path import row_reader
    from pyspark_upsert_kafka.formats.decoded_size import BoundedDecoder, Items, Measure, item_bytes
    from pyspark_upsert_kafka.formats.decoding import PathsDecoder, RowPath

    dialect = check(spec)
    target = arrow_schema(spec.schema)
    row = row_reader(spec.schema, dialect)
    row_path = RowPath(row, target, skip_bad=dialect.ignore_parse_errors)
    vectorised = compile_vectorised_path(spec.schema, target, dialect)
    paths: Decoder = row_path
    if vectorised is not None:
        by_columns = compile_column_path(spec.schema, target, dialect)
        paths = PathsDecoder(vectorised, row_path, by_columns)
    # An element takes one byte, its delimiter.
    widest = max((item_bytes(kind) for kind in target.types if pa.types.is_list(kind)), default=0)
    measure = Measure(Items(widest))
    return BoundedDecoder(paths, target, measure, skip_bad=dialect.ignore_parse_errors)


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side. Raises as `check` does."""
    from pyspark_upsert_kafka.formats.csv.csv_encoder import CsvEncoder

    return CsvEncoder(spec.schema, check(spec))


FORMAT = Format("csv", OPTIONS, decoder, encoder, check_decoder=check, check_encoder=check)


def check_columns(columns: StructType) -> None:
    """Raises SchemaError for a column that CSV cannot carry, as ``CsvRowSchemaConverter`` does."""
    if not columns.fields:
        raise SchemaError(
            "The 'csv' format needs at least one column: it cannot write an empty row."
        )
    _check_names(columns, "")
    for field in columns.fields:
        kind = field.dataType
        if isinstance(kind, ArrayType):
            _check_nested([kind.elementType], field.name)
        elif isinstance(kind, StructType):
            _check_names(kind, f"{field.name}.")
            _check_nested([inner.dataType for inner in kind.fields], field.name)
        elif type(kind) not in TEXT_TYPES:
            raise SchemaError(
                f"Unsupported type '{kind.simpleString()}' for field '{field.name}': the 'csv' "
                "format carries booleans, numbers, strings, binary, dates, timestamps, and arrays "
                "and structs of these."
            )


def _check_names(columns: StructType, path: str) -> None:
    for name, times in Counter(columns.names).items():
        if times > 1:
            raise SchemaError(f"Field {path + name!r} occurs {times} times.")


def _check_nested(kinds: list[DataType], name: str) -> None:
    if not kinds:
        raise SchemaError(f"Field '{name}' is a struct without fields: the 'csv' format has none.")
    for kind in kinds:
        if type(kind) not in TEXT_TYPES:
            raise SchemaError(
                "Only simple types are supported in the second level nesting of fields "
                f"'{name}' but was: {kind.simpleString()}."
            )

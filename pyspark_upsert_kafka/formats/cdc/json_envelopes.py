"""Envelopes in JSON: their options, and how they are decoded by the format ``json``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.types import StringType, StructField, StructType

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.formats.codec import CodecSpec
from pyspark_upsert_kafka.formats.json import check_columns
from pyspark_upsert_kafka.formats.json.settings import OPTIONS as JSON_OPTIONS

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.change_format import ChangeSpec
    from pyspark_upsert_kafka.formats.codec import Decoder

_FAIL_ON_MISSING = "fail-on-missing-field"

OPTIONS: tuple[Option, ...] = tuple(each for each in JSON_OPTIONS if each.name != _FAIL_ON_MISSING)
"""The options that all have; those about writing are accepted, since Flink has them."""


def check(spec: CodecSpec) -> None:
    """Raises SchemaError when JSON cannot carry a column."""
    check_columns(spec.schema)


def refuse(spec: CodecSpec) -> NoReturn:
    """Refuses to read keys, and to write."""
    raise OptionError(
        f"A CDC format is for reading values: it is no format of the message {spec.side}, and nothing is written with it. "
        "'json' and 'avro-confluent' are."
    )


def decoder(fields: Sequence[StructField], spec: ChangeSpec) -> Decoder:
    """Compiles the decoder of envelopes with these fields."""
    from pyspark_upsert_kafka.formats import json

    options = {**spec.value.options, _FAIL_ON_MISSING: False}
    return json.decoder(CodecSpec(StructType([*fields]), "value", options, spec.value.topics))


def row_fields(*names: str) -> Callable[[bytes], Collection[str]]:
    """What gives the names of the fields of a message's first row.

    Args:
        names: The fields of the envelope that may hold a row, or an array of rows.
    """

    def fields(message: bytes) -> Collection[str]:
        from pyspark_upsert_kafka.formats.json.document import parse_object

        whole = parse_object(message)
        payload = whole.get("payload")
        envelope = payload if type(payload) is dict else whole
        found = next((envelope[name] for name in names if envelope.get(name)), None)
        row = found[0] if type(found) is list else found
        return row.keys() if type(row) is dict else ()

    return fields


def row_after(spec: ChangeSpec) -> StructType:
    """A row as a field of an envelope; what is NOT NULL in the table is checked when it is known what happened to the row."""
    return _not_empty([StructField(each.name, each.dataType) for each in spec.value.schema])


def row_before(spec: ChangeSpec) -> StructType:
    """The same before a change, of which a table with a primary key needs the key only."""
    after = row_after(spec)
    return _not_empty([each for each in after if each.name in spec.key]) if spec.is_keyed else after


def _not_empty(fields: list[StructField]) -> StructType:
    """An object of these fields; one without fields has one that no message has, so that it can be told from NULL."""
    return StructType(fields or [StructField("", StringType())])

"""Messages of CDC formats, decoded as the tests want to see them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.format_catalog import format_named, format_options
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.formats.codec import ChangeDecoder, ChangeSpec, CodecSpec, DecodedChanges

COLUMNS = "id BIGINT, name STRING"

INS, PRE, POST, DEL, UPS = (
    Change.INSERT, Change.UPDATE_PREIMAGE, Change.UPDATE_POSTIMAGE, Change.DELETE, Change.UPSERT,
)  # fmt: skip


def columns_of(text_: str) -> StructType:
    """Columns in Spark's DDL; there may be none."""
    return spark_columns(text_) if text_ else StructType()


def change_decoder(
    name: str,
    columns: str = COLUMNS,
    *,
    key: Sequence[str] | None = None,
    reads_key: bool = False,
    metadata: Sequence[str] = (),
    **given: str,
) -> ChangeDecoder:
    """The decoder of a format.

    Args:
        name: The format.
        columns: The columns of the row.
        key: Those of the primary key; None = there is none, and rows before and after each change are given.
        reads_key: Whether keys of messages are read too.
        metadata: The metadata that is wanted.
        given: Options of the format, with ``_`` for ``-``.
    """
    texts = {option.replace("_", "-"): value for option, value in given.items()}
    options = {option.name: option.read(texts) for option in format_options(name, "value")}
    value = CodecSpec(columns_of(columns), "value", options)
    spec = ChangeSpec(value, key is not None, tuple(key or ()), reads_key, tuple(metadata))
    compiled = format_named(name, "value").changes
    assert compiled is not None
    return compiled(spec)


def checked(decoded: DecodedChanges, columns: str = COLUMNS) -> DecodedChanges:
    """The result, if it keeps what every decoder promises."""
    wanted = arrow_schema(columns_of(columns))
    assert decoded.rows.schema.types == wanted.types
    assert decoded.rows.schema.names == wanted.names
    decoded.rows.validate(full=True)
    places = list(decoded.places)
    assert len(places) == len(decoded.kinds)
    if wanted.names:
        assert decoded.rows.num_rows == len(places)
    assert places == sorted(places)
    others = [set(each) for each in (decoded.errors, decoded.skipped, decoded.passed_over)]
    assert sum(map(len, others)) == len(set().union(*others))
    assert set(places).isdisjoint(set().union(*others))
    for column in decoded.metadata.values():
        assert len(column) == len(places)
    return decoded


def rows_of(decoded: DecodedChanges) -> list[tuple[Any, ...]]:
    """Of each row the index of its message, its kind and its values."""
    rows = decoded.rows.to_pylist()
    kinds = [Change(kind) for kind in decoded.kinds]
    return [
        (int(place), kind, *row.values())
        for place, kind, row in zip(decoded.places, kinds, rows, strict=True)
    ]


def text(message: Any) -> bytes:
    """A message; what is bytes already stays as it is."""
    return message if isinstance(message, bytes) else json.dumps(message).encode()


def decoded(name: str, *messages: Any, columns: str = COLUMNS, **spec: Any) -> DecodedChanges:
    """What the messages are decoded to."""
    found = change_decoder(name, columns, **spec).decode([text(each) for each in messages])
    return checked(found, columns)


def rows(name: str, *messages: Any, **spec: Any) -> list[tuple[Any, ...]]:
    """The rows of messages, of which none may be bad."""
    found = decoded(name, *messages, **spec)
    assert found.errors == {}
    return rows_of(found)


def error(name: str, message: Any, **spec: Any) -> str:
    """Why a message cannot be decoded, the same on the vectorised path and on the row path."""
    decoder = change_decoder(name, **spec)
    alone, many = decoder.decode([text(message)]), decoder.decode([text(message)] * 70)
    assert not len(alone.places)
    assert [*many.errors.values()] == [alone.errors[0]] * 70
    return alone.errors[0]

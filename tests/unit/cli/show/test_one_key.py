"""``--key``: texts of keys, and the rows that have one."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from pyspark_upsert_kafka.cli.show.one_key import key_texts, one_key
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.table import Table, table_to_read
from tests.table_options import table_options


def table(columns: str, key: str = "id") -> Table:
    """A table with these columns."""
    options = read_options(table_options(primary_key=key), format_options, stream=False)
    return table_to_read(spark_columns(columns), options)


@pytest.mark.parametrize(
    ("text", "columns", "texts"),
    [
        ("id=1", ["id"], {"id": "1"}),
        ("ID=1", ["id"], {"id": "1"}),
        ("id=", ["id"], {"id": ""}),
        ("id=a=b", ["id"], {"id": "a=b"}),
        ("id=a,b=c", ["id"], {"id": "a,b=c"}),
        ("b=c,id=a", ["id", "b"], {"id": "a", "b": "c"}),
        ("id=a, b=c", ["id", "b"], {"id": "a", "b": "c"}),
        ("a=1,aa=2", ["a", "aa"], {"a": "1", "aa": "2"}),
        ("a.b=1", ["a.b"], {"a.b": "1"}),
    ],
)
def test_texts(text: str, columns: list[str], texts: dict[str, str]) -> None:
    """A value reaches up to the next column of the key."""
    assert key_texts(text, columns) == texts


@pytest.mark.parametrize("text", ["id=1", "id=1,id=2", "x=1,id=2,b=3", "b=1", "id1,b=2", "axb=1"])
def test_texts_of_no_key(text: str) -> None:
    """The key is all of its columns, each once; nothing else stands there."""
    with pytest.raises(OptionError, match=r"write --key id=\.\.\.,b=\.\.\."):
        key_texts(text, ["id", "b"])


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("BIGINT", "7", 7),
        ("STRING", "7", "7"),
        ("STRING", "a b", "a b"),
        ("BOOLEAN", "true", True),
        ("DOUBLE", "1.0E20", 1e20),
        ("DOUBLE", "Infinity", float("inf")),
        ("DECIMAL(10, 2)", "100.00", Decimal("100.00")),
        ("BINARY", "AAE=", b"\x00\x01"),
        ("TIMESTAMP", "2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=timezone.utc)),
        ("INTERVAL DAY TO SECOND", "1500.250", timedelta(milliseconds=1500.25)),
        ("INTERVAL DAY TO SECOND", "-60000", timedelta(minutes=-1)),
    ],
)
def test_values(kind: str, text: str, value: Any) -> None:
    """A value is written as the output spells it."""
    assert one_key(f"id={text}", table(f"id {kind}")).values.to_pylist() == [{"id": value}]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("BIGINT", "seven"), ("INT", "3000000000"), ("TIMESTAMP", "2026-01-31"), ("DATE", "x"),
        ("INTERVAL DAY TO SECOND", "1 day"),
    ],
)  # fmt: skip
def test_values_of_another_type(kind: str, text: str) -> None:
    """It is refused with the column and its type."""
    with pytest.raises(
        OptionError, match=f"'{text}' is not a value of column 'id', which is {kind}"
    ):
        one_key(f"id={text}", table(f"id {kind}"))


def test_a_source_without_keys() -> None:
    """Its rows have no key that could be named."""
    raw = table_options(**{"primary-key": None, "key.format": None, "read.mode": "append"})
    options = read_options(raw, format_options, stream=False)

    with pytest.raises(OptionError, match="--key needs a table with a key"):
        one_key("id=1", table_to_read(spark_columns("id INT"), options))

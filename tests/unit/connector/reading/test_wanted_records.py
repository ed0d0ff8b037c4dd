"""Messages are chosen by what they begin with; how schemas name record types is tested with the registries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.reading.wanted_records import (
    kept_by_beginning,
    wanted_records,
)
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options
from tests.unit.registry.fake_registry import FakeRegistry, serving

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def _is_kept(registry: FakeRegistry, key: bytes, value: bytes | None, **given: str | None) -> bool:
    """Whether a message is kept where orders are wanted."""
    sides = [(side, given.get(f"{side}__format")) for side in ("key", "value")]
    urls = {f"{side}.{name}.url": registry.url for side, name in sides if name is not None}
    options = read_options(
        table_options(**given, **urls, **{"scan.record-names": "Order"}),
        format_options,
        stream=True,
    )
    columns = StructType().add("id", "long").add("_change_type", "string")
    wanted = wanted_records(table_to_read(columns, options), options)
    assert wanted is not None
    batch = RawBatch("orders", 0, BytesColumn.of([key]), BytesColumn.of([value]), [0])
    return len(wanted.of(batch)) == 1


@pytest.mark.parametrize(
    ("value", "is_kept"),
    [
        (b"\0\0\0\0\1\2", True),
        (b"\0\0\0\0\2\2", False),
        # Of these no type is known: each may be an order.
        (b"", True),
        (b"{}", True),
        (b"\0\0\0", True),
        (b"\0\0\0\0\7\2", True),
    ],
)
def test_only_what_is_known_to_be_of_another_type_is_passed_over(
    value: bytes, is_kept: bool
) -> None:
    """A message that names no schema is kept, so that it is told as one that cannot be decoded."""
    with serving() as registry:
        registry.schema(1, ORDER)
        registry.schema(2, {**ORDER, "name": "Customer"})

        assert _is_kept(registry, b'{"id":1}', value, value__format="avro-confluent") is is_kept


def test_tombstones_of_a_format_whose_keys_are_not_read_are_kept() -> None:
    """Nothing says of which type they are, and they become no rows."""
    with serving() as registry:
        assert _is_kept(
            registry, b"k", None, key__format=None, value__format="debezium-avro-confluent"
        )


@pytest.mark.parametrize(
    ("key", "is_kept"),
    [
        (b"\0\0\0\0\3\2", True),
        (b"\0\0\0\0\4\2", False),
        # Of these no schema is known.
        (b"", True),
        (b"\0\0\0\0\7\2", True),
    ],
)
def test_a_tombstone_is_passed_over_whose_key_is_known_to_have_none_of_the_columns(
    key: bytes, is_kept: bool
) -> None:
    """It deletes a row of another type."""
    with serving() as registry:
        registry.schema(3, {**ORDER, "name": "Key"})
        registry.schema(4, {**ORDER, "fields": [{"name": "mail", "type": "long"}]})
        formats = {"key__format": "avro-confluent", "value__format": "avro-confluent"}

        assert _is_kept(registry, key, None, **formats) is is_kept


@given(
    st.lists(st.one_of(st.none(), st.binary(max_size=4), st.sampled_from([b"ab", b"abc", b"abcd"])), max_size=12),
    st.integers(1, 3),
)  # fmt: skip
def test_what_a_beginning_says_is_said_of_each_message(messages, length):
    """However much of them must be seen: the answer is that for the message alone."""

    def keeps(beginning: bytes, is_whole: bool) -> bool | int:
        if beginning.startswith(b"a") and not is_whole and len(beginning) < 4:
            return len(beginning) + 1
        return len(beginning) % 2 == 0 if beginning.startswith(b"a") else beginning[:1] < b"a"

    def alone(message: bytes) -> bool:
        seen = length
        while True:
            answer = keeps(message[:seen], len(message) < seen)
            if isinstance(answer, bool):
                return answer
            seen = answer

    found = kept_by_beginning(pa.array(messages, pa.large_binary()), keeps, length)

    assert found.dtype == np.bool_
    assert found.tolist() == [each is None or alone(each) for each in messages]

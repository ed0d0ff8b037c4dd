"""What messages hold that are given as pointers."""

from __future__ import annotations

import ctypes

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.kafka.native import message_pointers
from pyspark_upsert_kafka.kafka.native.library import Message
from pyspark_upsert_kafka.kafka.native.message_pointers import (
    MessagePointers,
    bytes_at,
    can_be_read,
    fields_of,
)

VALUES = st.lists(st.none() | st.binary(max_size=20), max_size=30)


def test_messages_can_be_read_so_here() -> None:
    """Else every other test is of the slower way only."""
    assert can_be_read()


@given(values=VALUES, order=st.randoms(use_true_random=False))
def test_bytes_are_copied_from_wherever_they_are(values: list[bytes | None], order) -> None:
    """Null is not empty, and memory knows no order."""
    memory = [None if value is None else ctypes.create_string_buffer(value) for value in values]
    places = [*range(len(values))]
    order.shuffle(places)
    at = [0 if memory[place] is None else ctypes.addressof(memory[place]) for place in places]
    sizes = [len(values[place] or b"") for place in places]

    found = bytes_at(np.array(at, np.uintp), np.array(sizes, np.uintp))
    for buffer in memory:
        if buffer is not None:
            ctypes.memset(buffer, 0xFF, len(buffer))

    found.column.validate(full=True)
    assert found == [values[place] for place in places]


def test_what_lies_between_takes_no_room() -> None:
    """Ten bytes at both ends of a hundred megabytes are twenty bytes."""
    memory = np.zeros(100_000_000, np.uint8)
    places = np.array([memory.ctypes.data + at for at in (99_999_990, 0)], np.uintp)
    before = pa.total_allocated_bytes()

    found = bytes_at(places, np.array([10, 10], np.uintp))

    assert found == [bytes(10)] * 2
    assert pa.total_allocated_bytes() - before < 10_000


def test_fields_are_those_of_the_public_struct() -> None:
    """Of each message at once, in the order of the pointers."""
    messages = [Message(at, 2, 3, 4, 5, 6, 7, at * 100, 9) for at in range(3)]
    pointers = np.array([ctypes.addressof(each) for each in messages[::-1]], np.uintp)

    found = fields_of(pointers)

    assert found["offset"].tolist() == [200, 100, 0]
    assert found["err"].tolist() == [2, 1, 0]


def test_a_container_of_messages_is_what_it_is_taken_for() -> None:
    """Librdkafka has the function since 2.15; where it takes something else, it is not used."""
    has_it = hasattr(message_pointers._functions(), "rd_kafka_messages_destroy")

    assert (message_pointers._free_together() is not None) == has_it


def test_freeing_nothing_does_nothing() -> None:
    """However often."""
    pointers = MessagePointers(5)

    pointers.free()
    pointers.free()

"""A function of C called for each pair of pointers."""

from __future__ import annotations

import ctypes
from ctypes import c_void_p

import numpy as np

from pyspark_upsert_kafka.kafka.native.message_pointers import call_on_pairs, calls_on_pairs


def test_it_works_here() -> None:
    """Else every other test is of the slower way only."""
    assert calls_on_pairs()


def test_it_ends_where_the_function_gives_0() -> None:
    """Strstr gives the place where the second text begins in the first one, or 0."""
    texts = [ctypes.create_string_buffer(text) for text in (b"abc", b"xbc", b"none", b"b")]
    sought = ctypes.create_string_buffer(b"b")
    first = np.array([ctypes.addressof(text) for text in texts], np.uintp)
    second = np.full(4, ctypes.addressof(sought), np.uintp)
    found = np.zeros(4, np.int64)
    strstr = ctypes.cast(ctypes.CDLL(None).strstr, c_void_p).value or 0

    call_on_pairs(strstr, first, second, found)

    assert found.tolist() == [int(first[0]) + 1, int(first[1]) + 1, 0, 0]

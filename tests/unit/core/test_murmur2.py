"""Which partition holds a key, as the Java client has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import DefaultPartitioner
from kafka.partitioner.default import murmur2 as another

from pyspark_upsert_kafka.kafka.outgoing_messages import murmur2, partition_of
from tests.laws import pinned


@pytest.mark.parametrize(
    ("key", "hash_"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_of_kafkas_own_test(key: bytes, hash_: int) -> None:
    """These numbers are those of Kafka's ``UtilsTest.testMurmur2``."""
    assert murmur2(key) == hash_ % 2**32


@pinned("key", [b"\xff" * length for length in range(13)])
@given(key=st.binary(max_size=64))
def test_hashes_of_another_implementation(key: bytes) -> None:
    """kafka-python has the same for any key."""
    assert murmur2(key) == another(key) & 0xFFFFFFFF


@pytest.mark.parametrize("partitions", [1, 3, 5, 7, 500])
def test_partitions_of_another_implementation(partitions: int) -> None:
    """kafka-python sends a key to the same partition, also where the hash is negative in Java."""
    keys = [b"%d" % at * (1 + at % 4) for at in range(1000)]

    assert sum(murmur2(key) >= 2**31 for key in keys) > 400
    theirs = DefaultPartitioner()
    there = [*range(partitions)]
    assert [partition_of(key, partitions) for key in keys] == [
        theirs(key, there, there) for key in keys
    ]


@given(st.binary(max_size=64), st.integers(1, 500))
def test_partitions_are_there(key: bytes, partitions: int) -> None:
    """A partition is one of those of the topic, though the hash may be negative in Java."""
    assert 0 <= partition_of(key, partitions) < partitions

"""Which partition a key is sent to: the Java client's ``BuiltInPartitioner.partitionForKey``."""

from __future__ import annotations

_MULTIPLIER, _SEED, _BITS = 0x5BD1E995, 0x9747B28C, 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """The partition to which the Java client, and this connector, send a key.

    >>> partition_of(b'{"user_region":"Asia"}', 4)
    0
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """The hash of Kafka's ``Utils.murmur2``, as an unsigned number of 32 bits.

    >>> murmur2(b"foobar") - 2**32  # from Kafka's own UtilsTest
    -790332482
    """
    state = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _BITS
        part = (part ^ part >> 24) * _MULTIPLIER & _BITS
        state = state * _MULTIPLIER & _BITS ^ part
    if whole < len(data):
        state = (state ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _BITS
    state = (state ^ state >> 13) * _MULTIPLIER & _BITS
    return state ^ state >> 15

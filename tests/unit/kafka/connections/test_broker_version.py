"""Which release an answer to ApiVersions means."""

from __future__ import annotations

import struct

import pytest

from pyspark_upsert_kafka.kafka.connections.broker_version import ApiVersions, parsed, release_of


def answer(requests: list[int], features: dict[str, tuple[int, int]], error: int = 0) -> bytes:
    """An answer, version 3, with a tag that nobody knows."""
    supported = bytes([len(features) + 1])
    for name, (oldest, newest) in features.items():
        supported += (
            bytes([len(name) + 1]) + name.encode() + struct.pack(">hh", oldest, newest) + b"\0"
        )
    body = struct.pack(">h", error) + bytes([len(requests) + 1])
    for number in requests:
        body += struct.pack(">hhh", number, 0, 1) + b"\0"
    body += struct.pack(">i", 0)
    return body + b"\2" + bytes([0, len(supported)]) + supported + b"\1\2\0\0"


def test_an_answer_is_read() -> None:
    """The requests and features of a broker; what is unknown is passed over."""
    features = {"kraft.version": (0, 1), "metadata.version": (7, 29)}

    assert parsed(answer([18, 66], features)) == ApiVersions(
        0, frozenset({18, 66}), {"kraft.version": 1, "metadata.version": 29}
    )


def test_an_old_broker_does_not_know_the_version() -> None:
    """It answers in the oldest layout, which is not read."""
    assert release_of(parsed(struct.pack(">hi", 35, 0))) == "before 2.4"


@pytest.mark.parametrize(
    ("requests", "level", "release"),
    [
        ([], 31, "4.3"),
        ([], 29, "4.2"),
        ([], 25, "4.0"),
        ([], 21, "3.9"),
        ([], 7, "3.3"),
        ([66], 0, "3.0"),
        ([60], 0, "2.8"),
        ([46], 0, "2.4"),
        ([18], 0, "before 2.4"),
    ],
)
def test_releases(requests: list[int], level: int, release: str) -> None:
    """By the feature from Kafka 3.3 on, before that by the requests that there are."""
    assert release_of(ApiVersions(0, frozenset(requests), {"metadata.version": level})) == release

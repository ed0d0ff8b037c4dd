"""Fetching with kafka-python: what an error of the library must not cost."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka import errors as kafka_errors

from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.kafka.client_errors import ClientErrors
from pyspark_upsert_kafka.kafka.kafka_python import fetcher
from pyspark_upsert_kafka.kafka.kafka_python.fetcher import KafkaPythonFetcher
from pyspark_upsert_kafka.kafka.range_fetch import RangeFetch


class Consumer:
    """A consumer of ten messages; its second poll passes two of them, and then raises."""

    def __init__(self) -> None:
        self.at = self.polls = 0

    def assign(self, _: object) -> None:
        """Only one partition is ever read."""

    def seek(self, _: object, position: int) -> None:
        """Goes on there."""
        self.at = position

    def position(self, _: object, **__: object) -> int:
        """Where it is."""
        return self.at

    def poll(self, **_: object) -> dict[Any, list[Any]]:
        """The next two messages."""
        self.polls += 1
        found = [
            SimpleNamespace(offset=offset, key=b"k", value=b"v")
            for offset in range(self.at, self.at + 2)
        ]
        self.at += 2
        if self.polls == 2:
            raise kafka_errors.NodeNotReadyError
        return {fetcher.ClientPartition("t", 0): found}


def test_an_error_after_messages_were_passed_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not handed out is fetched again."""
    monkeypatch.setattr(fetcher, "errors_of", lambda _: ClientErrors())
    range_ = Range("t", 0, 0, 10)
    fetching = KafkaPythonFetcher(
        Consumer(), lambda: nullcontext(cast("Any", None)), range_, details=False
    )

    batches = RangeFetch(fetching, range_, "here", fail_on_data_loss=True, timeout_s=60.0).batches()

    assert [offset for batch in batches for offset in batch.offsets] == list(range(10))

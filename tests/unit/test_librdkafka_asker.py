"""librdkafka's answers about offsets."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.kafka.failures import AttemptError, Kind
from pyspark_upsert_kafka.kafka.librdkafka.asker import known


def test_an_offset_that_is_none_is_asked_for_again():
    """It comes without an error after a lost connection; -1 says that no message is so young."""
    assert [known(offset) for offset in (-1, 0, 42)] == [-1, 0, 42]

    with pytest.raises(AttemptError) as error:
        known(-1001)

    assert error.value.failure.kind is Kind.RETRIABLE

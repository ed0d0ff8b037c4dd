"""What is done with bad messages: whatever their reasons quote, it is shown safely wherever they go."""

from __future__ import annotations

import logging

import pytest

from pyspark_upsert_kafka.connector import bad_messages
from pyspark_upsert_kafka.connector.bad_messages import BadMessage, with_format_hint
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import DecodeError
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

REASON = (
    "field 'a\x1b[2J\u202e' at http://me:s3cret@host\nERROR Basic bWU6czNjcmV0 \ud83d" + "x" * 9_000
)
SHOWN = r"field 'a\x1b[2J\u202e' at http://***@host\nERROR Basic *** \ud83dxxx"


def batch() -> RawBatch:
    """One message."""
    column = BytesColumn.of([b"k"])
    return RawBatch("t", 0, column, column, [7], timestamps=[1], headers=[[]])


@pytest.mark.parametrize("hint", [False, True])
def test_a_reason_is_printable_short_and_without_logins(hint):
    """It quotes data, and is in errors, in the error column and in headers."""
    bad = BadMessage(0, "value", REASON)
    if hint:
        bad = with_format_hint(bad, b"{}", "avro")

    assert bad.reason.startswith(SHOWN)
    assert bad.reason.isprintable()
    assert len(bad.reason) <= 2_100


def test_a_dead_letter_has_such_a_reason():
    """Half a surrogate pair in it can be sent too."""
    letters = bad_messages._letters("letters", batch(), [BadMessage(0, "value", REASON)])

    (headers,) = [headers for *_, headers in letters.rows()]
    assert dict(headers or [])["__error.message"] is not None
    assert (dict(headers or [])["__error.message"] or b"").decode().startswith(SHOWN)


def test_the_log_and_the_error_have_such_a_reason(caplog):
    """Modes ``ignore`` and ``fail``."""
    with caplog.at_level(logging.WARNING):
        bad_messages._warn(batch(), [BadMessage(0, "value", REASON)])
    with pytest.raises(DecodeError) as error:
        bad_messages._fail(batch(), [BadMessage(0, "value", REASON)])

    for text in (caplog.records[0].getMessage(), str(error.value)):
        assert SHOWN in text
        assert text.isprintable()

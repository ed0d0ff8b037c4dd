"""Binary as base64 text: what Jackson reads, in one text as in a column of them."""

from __future__ import annotations

import base64

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, StructField, StructType

from pyspark_upsert_kafka.formats.text_values import binaries, binary
from tests.laws import pinned
from tests.unit.formats.csv import codecs as csv
from tests.unit.formats.json import codecs as json_

BINARY = StructType([StructField("a", BinaryType())])
READ = {"": b"", "QUJD": b"ABC", "QUI=": b"AB", "QQ==": b"A", "QR==": b"A", "QUJ=": b"AB"}
"""As Jackson 2.21 reads them with ``Base64Variants.MIME_NO_LINEFEEDS``; bits that mean nothing are ignored."""

REFUSED = [
    *("=", "==", "====", "Q===", "QQ=", "QQ===", "QUI==", "QUJD=", "QUJD==", "QUJD====", "=QQ="),
    *("QQ", "-_==", "Q Q=", "QQ==QQ==", "QUJD\n"),
]
"""Jackson reads the last two, which no writer makes."""


@pytest.mark.parametrize("text", READ)
def test_what_jackson_reads(text):
    """One text, with padding as it must be."""
    assert binary(text) == READ[text]


@pytest.mark.parametrize("text", REFUSED)
def test_excess_and_missing_padding_is_refused(text):
    """On every version of Python, and by the column as well."""
    with pytest.raises(ValueError, match="base64"):
        binary(text)
    with pytest.raises(ValueError, match="base64"):
        binaries(pa.array(["QQ==", text, "QQ=="]))


@pinned(
    "text",
    [
        "",
        "QUJD",
        "QQ==",
        "QR==",
        "QQ=",
        "QQ",
        "Q",
        "====",
        "QUJD=",
        "QUJD====",
        "Q Q==",
        "QUJD\n",
        "-_-_",
        "+/+/",
        "QQ==QQ==",
        "QUI=",
        "QUJ=",
        "é",
    ],
)
@given(
    text=st.one_of(
        st.text("QUJD=-+/ \n", max_size=9), st.binary().map(base64.b64encode).map(bytes.decode)
    )
)
def test_a_column_reads_what_one_text_does_or_refuses(text):
    """What the column refuses is read one by one, so it may refuse more, and never read more."""
    try:
        seen = binaries(pa.array([text])).to_pylist()
    except ValueError:
        return
    assert seen == [binary(text)]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_batch_refuses_what_one_message_does(form):
    """Each bad text is blamed by itself, whichever path its message takes."""
    texts = [text for text in (*READ, *REFUSED) if text and text.isprintable()] * 20
    if form == "csv":
        decode, messages = csv.decoder(BINARY, null_literal="-").decode, [t.encode() for t in texts]
    else:
        decode = json_.decoder(BINARY).decode
        messages = [b'{"a":"%b"}' % text.encode() for text in texts]
    decoded = decode(messages)
    assert [*decoded.errors] == [at for at, text in enumerate(texts) if text not in READ]
    assert decoded.rows.column(0).to_pylist() == [READ.get(text) for text in texts]
    alone = [decode([message]) for message in messages]
    assert [*decoded.errors.values()] == [why for each in alone for why in each.errors.values()]

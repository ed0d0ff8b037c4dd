"""`make fuzz`: a few seconds of it, and whether it would find what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from pyspark_upsert_kafka.formats.batches import nulls
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from tests.laws import FULL
from tools.fuzz.__main__ import run
from tools.fuzz.case import Case, NoRow, Table, written
from tools.fuzz.child import bisected, program_of, smallest
from tools.fuzz.codecs import decoder_of, encoder_of
from tools.fuzz.laws import Codecs, check, difference
from tools.fuzz.reading import BrokenLawError
from tools.fuzz.rounds import SUBJECTS, Find, case_of, compiled, round_of

MESSAGES = 30_000 if FULL else 3_000
"""Of each format."""

CDC_MESSAGES = 5_000 if FULL else 500
"""Of each CDC format: their messages are made of several rows, and take longer."""


@pytest.mark.parametrize("subject", SUBJECTS)
def test_some_rounds_find_nothing(subject):
    """All paths of a format agree about random messages."""
    wanted = CDC_MESSAGES if subject in CDC_FORMATS else MESSAGES
    read, number = 0, 0
    while read < wanted:
        count, found = round_of(subject, 1, number)
        assert not isinstance(found, Find), found.broken
        read, number = read + count, number + 1


def test_a_process_of_its_own_finds_nothing_either(capsys):
    """As `make fuzz` runs a format, so that a message which ends the process is a find."""
    state = run("raw", 1, 0, 100, None)
    assert state.finds == 0, capsys.readouterr().out
    assert state.messages >= 100


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_round_follows_from_its_numbers(subject):
    """The same seed and number make the same messages, another number others."""
    one, same, other = (case_of(subject, 5, number) for number in (3, 3, 4))
    assert one.table == same.table
    assert list(one.messages) == list(same.messages)
    assert list(one.messages) != list(other.messages)


TABLE = Table("json", StructType([StructField("a", LongType())]))
GOOD = [b'{"a":%d}' % at for at in range(200)]
ROWS = pa.RecordBatch.from_arrays(
    [pa.array(range(200), pa.int64())], schema=pa.schema([("a", pa.int64())])
)


@dataclass(frozen=True)
class Wrong:
    """A decoder with something wrong about it."""

    decoder: Decoder
    spoil: Callable[[Sequence[bytes], Decoded], Decoded]

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """What the decoder gives, spoiled."""
        return self.spoil(messages, self.decoder.decode(messages))


def _fails(messages: Sequence[bytes], _: Decoded) -> Decoded:
    raise pa.ArrowInvalid(f"{len(messages)} messages")


def _without_rows(messages: Sequence[bytes], _: Decoded) -> Decoded:
    return Decoded(ROWS.slice(0, 0))


def _seven(rows: pa.RecordBatch) -> pa.RecordBatch:
    values = [7 if each == 130 else each for each in rows.column(0).to_pylist()]
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], schema=rows.schema)


WRONG = {
    "no message makes decode raise": _fails,
    "each message has a row": _without_rows,
    "no row is read of a bad message": lambda _, d: replace(d, errors={3: "bad"}),
    "small batches read as a large one": lambda m, d: replace(d, rows=_seven(d.rows)) if len(m) > 64 else d,
    "what was written reads back": lambda _, d: replace(d, rows=_seven(d.rows)),
    "a message reads alone as among others": lambda m, d: Decoded(nulls(d.rows.schema, 1), {0: "bad"}) if len(m) == 1 else d,
}  # fmt: skip


@pytest.mark.parametrize("law", WRONG)
def test_what_is_wrong_breaks_a_law(law):
    """Each law is broken by a decoder that disregards it."""
    case = written(TABLE, GOOD, ROWS, range(200))
    wrong = Wrong(decoder_of(TABLE), WRONG[law])
    with pytest.raises(BrokenLawError) as broken:
        check(case, Codecs(wrong, None), Random(1))
    assert broken.value.law == law


def test_every_cdc_format_is_fuzzed():
    """One that is added is fuzzed too."""
    lacking = {*CDC_FORMATS} - {*SUBJECTS}
    assert not lacking, f"tools/fuzz/cdc_cases.py: WRITERS lacks {lacking}"


def test_a_good_decoder_breaks_no_law():
    """The same messages, read as they should be."""
    check(
        written(TABLE, GOOD, ROWS, range(200)),
        Codecs(decoder_of(TABLE), encoder_of(TABLE)),
        Random(1),
    )


@pytest.mark.parametrize("answer", [NoRow("unreadable"), {"a": 8}, {"a": 7.0}, {"b": 7}])
def test_a_peer_that_reads_otherwise_breaks_a_law(answer):
    """It cannot read what is read, or reads another value, or another type."""
    case = Case(TABLE, [b'{"a":7}'], peer=lambda messages: [answer] * len(messages))
    with pytest.raises(BrokenLawError) as broken:
        check(case, Codecs(decoder_of(TABLE), None), Random(1))
    assert broken.value.law == "a peer agrees"


def test_the_program_of_a_find_shows_it(tmp_path):
    """It holds the table and the messages, and runs by itself."""
    case = replace(
        written(TABLE, GOOD, ROWS, range(200)), expected=ROWS.slice(1).take(pa.array([0] * 200))
    )
    codecs = compiled(case)
    assert isinstance(codecs, Codecs)
    with pytest.raises(BrokenLawError) as broken:
        check(case, codecs, Random(1))
    small = smallest(Find(case, broken.value))
    assert small.case.messages == [b'{"a":0}']
    exec(program_of(small), {})


def test_few_messages_are_kept_that_break_a_law():
    """Halves are left out, then smaller parts, while the others still break it."""
    assert bisected(range(1000), lambda some: {7, 700} <= {*some}) == [7, 700]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ([float("nan"), None], [float("nan"), None], True),
        ([0.0, 1.0], [-0.0, 1.0], False),
        ([1.0, None], [1.0, 0.0], False),
    ],
)
def test_values_are_equal_to_the_bit(one, other, equal):
    """NaN equals itself, -0.0 is not 0.0, and NULL is no value; in arrays and structs too."""
    for kind in (pa.float64(), pa.list_(pa.float64()), pa.struct([("x", pa.float64())])):
        wrap = {"list": lambda v: [v], "struct": lambda v: {"x": v}}.get(
            str(kind)[:6].split("<")[0], lambda v: v
        )
        some, others = (
            pa.RecordBatch.from_arrays([pa.array([wrap(v) for v in each], kind)], ["c"])
            for each in (one, other)
        )
        assert (difference(some, others) is None) is equal

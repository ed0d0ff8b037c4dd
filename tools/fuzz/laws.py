"""The laws that hold for all messages of all tables. The first law that is broken is a find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.batches import as_lists, with_type
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder, Encoder
from tools.fuzz.case import UNKNOWN, Case, NoRow
from tools.fuzz.reading import BrokenLawError, Decode, decoded, encoded, trace, writable

_ALONE = 40
"""So many messages of a case are read alone."""

_ASKED = 250
"""So many messages of a case are shown to a peer."""


@dataclass(frozen=True)
class Codecs:
    """The codecs of a case, compiled once."""

    decoder: Decoder
    encoder: Encoder | None


def check(case: Case, codecs: Codecs, rng: Random) -> None:
    """Raises BrokenLawError for a law that a case breaks."""
    messages = case.messages
    decode: Decode = codecs.decoder.decode
    whole = decoded(decode, messages, [len(messages)])
    _is_whole(whole, case)
    by_rows = decoded(decode, messages, _sizes(rng, len(messages), 1, 60))
    _agree("small batches read as a large one", whole, by_rows, messages)
    split = decoded(decode, messages, _sizes(rng, len(messages), 64, 700))
    _agree("a batch reads as its parts do", whole, split, messages)
    _alone(whole, decode, messages, rng)
    _expected(whole, case)
    if codecs.encoder is not None:
        readable = whole.rows.take(pa.array(np.flatnonzero(whole.read)))
        _again(readable, case, codecs.encoder, decode, rng)
    if case.peer is not None:
        _peer(whole, case, rng)


def _sizes(rng: Random, count: int, low: int, high: int) -> list[int]:
    sizes = []
    while count:
        sizes.append(min(count, rng.randint(low, high)))
        count -= sizes[-1]
    return sizes or [0]


def _is_whole(whole: Decoded, case: Case) -> None:
    """Each message has a row, which is NULL where it is an error or skipped, and rows are what Spark demands."""
    rows, count = whole.rows, len(case.messages)
    if rows.num_rows != count:
        raise BrokenLawError("each message has a row", f"{rows.num_rows} rows of {count}")
    if whole.skipped.intersection(whole.errors):
        raise BrokenLawError("a message is an error or skipped", f"{whole.skipped}")
    if not rows.schema.equals(arrow_schema(case.table.schema), check_metadata=True):
        raise BrokenLawError("rows have the table's schema", f"{rows.schema}")
    try:
        rows.validate(full=True)
    except Exception:  # noqa: BLE001
        raise BrokenLawError("rows are valid Arrow", trace()) from None
    for column, field in zip(rows.columns, rows.schema, strict=True):
        null = column.is_null().to_numpy(zero_copy_only=False)
        if not null[~whole.read].all():
            raise BrokenLawError("no row is read of a bad message", f"a value in {field}")
        if null[whole.read].any() and not field.nullable:
            raise BrokenLawError("NOT NULL holds", f"a null in {field}")


def _agree(law: str, one: Decoded, other: Decoded, messages: Sequence[bytes]) -> None:
    """The same messages are bad, for the same reason, and the others have the same values."""
    if one.errors != other.errors or one.skipped != other.skipped:
        for at in sorted({*one.errors, *other.errors, *one.skipped, *other.skipped}):
            some, others = _what(one, at), _what(other, at)
            if some != others:
                raise BrokenLawError(
                    law, f"{messages[at][:500]!r} is {some} in the one, {others} in the other", [at]
                )
    at = difference(one.rows, other.rows)
    if at is not None:
        seen, also = _shown(one.rows, at), _shown(other.rows, at)
        raise BrokenLawError(
            law, f"{messages[at][:500]!r} is {seen} in the one, {also} in the other", [at]
        )


def _what(seen: Decoded, at: int) -> str:
    return "skipped" if at in seen.skipped else seen.errors.get(at, "a row")


def _shown(rows: pa.RecordBatch, at: int) -> str:
    """A row, for people."""
    return "; ".join(f"{name}={rows.column(i)[at]!r}" for i, name in enumerate(rows.schema.names))[
        :1500
    ]


def _alone(whole: Decoded, decode: Decode, messages: Sequence[bytes], rng: Random) -> None:
    """A message reads as among others."""
    every = range(len(messages))
    for at in rng.sample(every, min(_ALONE, len(messages))):
        alone = decoded(decode, [messages[at]], [1])
        here = Decoded(
            whole.rows.slice(at, 1),
            {0: whole.errors[at]} if at in whole.errors else {},
            frozenset([0] if at in whole.skipped else []),
        )
        try:
            _agree("a message reads alone as among others", here, alone, [messages[at]])
        except BrokenLawError as found:
            found.places = [at]
            raise


def _expected(whole: Decoded, case: Case) -> None:
    """Messages that were written and are untouched are the rows of which they were written."""
    if case.expected is None or not len(case.places):
        return
    law = "what was written reads back"
    for at in (int(place) for place in case.places):
        if at in whole.errors or at in whole.skipped:
            raise BrokenLawError(law, f"{case.messages[at][:500]!r} is {_what(whole, at)}", [at])
    read = whole.rows.take(pa.array(case.places))
    at = difference(read, case.expected)
    if at is not None:
        place = int(case.places[at])
        text = f"{case.messages[place][:500]!r} is {_shown(read, at)}, written of {_shown(case.expected, at)}"
        raise BrokenLawError(law, text, [place])


def _again(rows: pa.RecordBatch, case: Case, encoder: Encoder, decode: Decode, rng: Random) -> None:
    """What was read can be written, has its bytes wherever it stands, and reads again as it was."""
    rows, written = writable(encoder, rows.slice(0, 600))
    if not written:
        return
    _anywhere(rows, written, encoder, rng)
    if not case.again:
        return
    again = decoded(decode, written, [len(written)])
    for at in sorted({*again.errors, *again.skipped}):
        text = (
            f"{_shown(rows, at)} is written as {written[at][:500]!r}, which is {_what(again, at)}"
        )
        raise BrokenLawError("what was read and written reads again", text)
    at = difference(rows, again.rows)
    if at is not None:
        text = f"{_shown(rows, at)} is written as {written[at][:500]!r}, which is {_shown(again.rows, at)}"
        raise BrokenLawError("what was read and written reads again", text)


def _anywhere(rows: pa.RecordBatch, written: list[bytes], encoder: Encoder, rng: Random) -> None:
    """A row's bytes do not depend on the batch around it."""
    chosen = [rng.randrange(len(written)) for _ in range(30)]
    law = "a row has its bytes wherever it stands"
    trials = [(rows.take(pa.array(chosen)), chosen)]
    start, size = rng.randrange(len(written)), rng.randint(1, 50)
    trials += [(rows.slice(start, size), range(start, min(len(written), start + size)))]
    trials += [(rows.slice(at, 1), [at]) for at in chosen[:5]]
    for some, places in trials:
        try:
            seen = encoded(encoder, some)
        except EncodeError as why:
            raise BrokenLawError(law, f"{why} among {len(places)} rows only") from None
        for message, at in zip(seen, places, strict=True):
            if message != written[at]:
                text = f"{_shown(rows, at)} is {message[:500]!r} and {written[at][:500]!r}"
                raise BrokenLawError(law, text)


def _peer(whole: Decoded, case: Case, rng: Random) -> None:
    """Another implementation reads the same values, and what it reads is read."""
    if case.peer is None:
        return
    count = len(case.messages)
    chosen = sorted(rng.sample(range(count), min(_ASKED, count)))
    answers = case.peer([case.messages[at] for at in chosen])
    ours = _as_numbers(whole.rows.take(pa.array(chosen, pa.int64()))).to_pylist()
    for at, found, answer in zip(chosen, ours, answers, strict=True):
        row = found if whole.read[at] else None
        message = case.messages[at][:500]
        if answer is UNKNOWN:
            continue
        if row is None and not isinstance(answer, NoRow) and not _unsure(answer):
            raise BrokenLawError(
                "a peer agrees",
                f"{message!r} is {_what(whole, at)} here, and {answer!r} for the peer",
                [at],
            )
        if row is not None and isinstance(answer, NoRow):
            raise BrokenLawError(
                "a peer agrees", f"{message!r} is {row} here, and for the peer {answer}", [at]
            )
        if row is not None and not _agrees(row, answer):
            raise BrokenLawError(
                "a peer agrees", f"{message!r} is {row} here, and for the peer {answer}", [at]
            )


def difference(some: pa.RecordBatch, others: pa.RecordBatch) -> int | None:
    """The first row that differs; None = all are equal. Both have equally many rows and one schema."""
    if _same_rows(some, others):
        return None
    low, high = 0, some.num_rows
    while high - low > 1:
        middle = (low + high) // 2
        if _same_rows(some.slice(low, middle - low), others.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    return low


def _same_rows(some: pa.RecordBatch, others: pa.RecordBatch) -> bool:
    return all(map(same, some.columns, others.columns))


def same(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays hold the same values; the type and its nested nullability count too."""
    if len(one) != len(other) or not one.type.equals(other.type, check_metadata=True):
        return False
    if (one.null_count or other.null_count) and not one.is_valid().equals(other.is_valid()):
        return False
    kind = one.type
    if pa.types.is_map(kind):
        return same(as_lists(one), as_lists(other))
    if pa.types.is_list(kind):
        lengths = (pc.fill_null(pc.list_value_length(each), 0) for each in (one, other))
        return next(lengths).equals(next(lengths)) and same(one.flatten(), other.flatten())
    if pa.types.is_struct(kind):
        return all(map(same, one.flatten(), other.flatten()))
    if pa.types.is_floating(kind):
        return bool((_bits(one) == _bits(other)).all())
    return one.equals(other)


def _bits(array: pa.Array) -> np.ndarray:
    numbers = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    numbers = np.where(np.isnan(numbers), numbers.dtype.type("nan"), numbers)
    return numbers.view(np.int32 if numbers.itemsize == 4 else np.int64)


def _unsure(answer: Any) -> bool:
    """Whether the peer has no say about a part of a row, which may be bad."""
    if isinstance(answer, dict):
        return any(map(_unsure, answer.values()))
    return answer is UNKNOWN or (isinstance(answer, list | tuple) and any(map(_unsure, answer)))


def _agrees(ours: Any, peer: Any) -> bool:
    """Whether values are equal as far as the peer knows: NaN equals itself, -0.0 is not 0.0."""
    if peer is UNKNOWN:
        return True
    if isinstance(ours, dict) and isinstance(peer, dict):
        return ours.keys() == peer.keys() and all(_agrees(ours[name], peer[name]) for name in ours)
    if isinstance(ours, list | tuple) and isinstance(peer, list | tuple):
        return len(ours) == len(peer) and all(map(_agrees, ours, peer))
    if isinstance(ours, float) and isinstance(peer, float):
        return repr(ours) == repr(peer)
    return type(ours) is type(peer) and bool(ours == peer)


def _as_numbers(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Times as numbers, days or microseconds: Python's own end with the year 9999."""
    columns = [with_type(column, _numbers_in(column.type)) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _numbers_in(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_numbers_in(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_numbers_in(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_numbers_in(kind.value_type)))
    return kind

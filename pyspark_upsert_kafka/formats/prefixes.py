"""Bytes that stand before what a format writes, as those that name a message's schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.bytes_column import BytesColumn, column_of, some_of
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.batches import nulls
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder, Encoder
from pyspark_upsert_kafka.formats.decoded_size import Budget
from pyspark_upsert_kafka.formats.decoding import Refusal, merge_by_position
from pyspark_upsert_kafka.formats.registry_format import UnknownSchemaError
from pyspark_upsert_kafka.formats.writers_columns import SchemaStopError

_BYTES = pa.large_binary()
_LONGEST = 1 << 40
"""More bytes than any message has."""

_KEPT = 1_000
"""For how many prefixes a decoder is kept: a topic has few, but messages that do not belong there may begin with anything."""


@dataclass(frozen=True)
class PrefixedEncoder:
    """Puts the same bytes before each message of an encoder.

    Args:
        encoder: Writes what follows them.
        prefix: The bytes.
    """

    encoder: Encoder
    prefix: bytes

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        """One message for each row. Raises EncodeError."""
        prefix, nothing = pa.scalar(self.prefix, _BYTES), pa.scalar(b"", _BYTES)
        return pc.binary_join_element_wise(prefix, self.encoder.encode(rows), nothing)


@dataclass(frozen=True)
class PrefixedDecoder:
    """Passes over the first bytes of each message.

    Args:
        decoder: Reads what follows them.
        length: How many there are.
    """

    decoder: Decoder
    length: int

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """All messages."""
        return self.decoder.decode(
            BytesColumn(pc.binary_slice(column_of(messages), self.length, _LONGEST))
        )


Prefixes = Callable[[pa.LargeBinaryArray], pa.LargeBinaryArray]
"""From messages the prefix of each."""

UnknownAmong = Callable[[Sequence[bytes]], Mapping[bytes, str]]


def _none_of(_: Sequence[bytes]) -> Mapping[bytes, str]:
    return {}


class _Unknown(Refusal):
    """There is no decoder now, but there may be one for the next messages."""


_MANY = 5
"""For so many prefixes there is none before those of others are asked for together."""

_BEHIND = "it stands behind a message that cannot be decoded, where reading ends"


class DecoderByPrefix:
    """Decodes messages of several kinds, each told by what it begins with.

    Args:
        prefix_of: The prefix of a message, a few bytes. No prefix is the beginning of another one; a message that is
            too short to have a prefix is its own.
        compile_decoder: Compiles the decoder of all messages with a prefix; it is given them with their prefix. Where
            it raises a SchemaError, each of these messages is bad; with an UnknownSchemaError the next ones need not be.
        target: The columns.
        prefixes_of: The same as ``prefix_of``, of many messages at once; None = one after the other.
        unknown_among: Of prefixes that one message each begins with, those that are known at once to have no decoder now, and why.
            It is asked once for some messages, when several of their prefixes had none.
        ends_at_bad: As in `CodecSpec`.
    """

    def __init__(  # noqa: PLR0913
        self,
        prefix_of: Callable[[bytes], bytes],
        compile_decoder: Callable[[bytes], Decoder],
        target: pa.Schema,
        prefixes_of: Prefixes | None = None,
        unknown_among: UnknownAmong = _none_of,
        *,
        ends_at_bad: bool = False,
    ) -> None:
        self._prefix_of, self._prefixes_of, self._target = prefix_of, prefixes_of, target
        self._unknown_among, self._ends_at_bad = unknown_among, ends_at_bad
        # Refusals are kept too: one may cost a compilation. They do not push out the decoders.
        self._compile = lru_cache(maxsize=_KEPT)(compile_decoder)
        self._kept = lru_cache(maxsize=_KEPT)(self._decoder_or_refusal)

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of all messages; those of one prefix are decoded together.

        Raises:
            TooManyMessagesError: The rows of all prefixes are too large together.
            SchemaStopError: Messages of a schema must not be decoded.
        """
        if not messages:
            return Decoded(nulls(self._target, 0))
        ends = pc.min_max(column_of(messages))
        prefix = self._prefix_of(ends["min"].as_py())
        if prefix == self._prefix_of(ends["max"].as_py()):  # then so begin all between the two
            return _decoded(self._decoder(prefix, messages, 0), messages)
        budget, parts, bad = Budget(len(messages)), [], dict[int, str]()
        groups, in_vain, end = [*self._groups(messages)], 0, len(messages)
        unknown: Mapping[bytes, str] = {}
        for prefix, places in groups:
            if places[0] > end:
                bad.update(dict.fromkeys(places.tolist(), _BEHIND))
                continue
            if prefix in unknown:
                bad[int(places[0])] = unknown[prefix]
                continue
            decoder = self._decoder(prefix, messages, places[0])
            if isinstance(decoder, Refusal):
                bad.update(dict.fromkeys(places.tolist(), decoder.reason))
                decoded_end = places[0]
                in_vain += isinstance(decoder, _Unknown)
                if in_vain == _MANY and isinstance(decoder, _Unknown):
                    unknown = self._unknown_among([each for each, at in groups if len(at) == 1])
            else:
                decoded = _decoded(decoder, some_of(messages, places))
                budget.take(decoded.rows.nbytes)
                parts.append((places, decoded))
                decoded_end = places[min(decoded.errors)] if decoded.errors else end
            if self._ends_at_bad:
                end = min(end, decoded_end)
        if bad:
            refused = Decoded(nulls(self._target, len(bad)), dict(enumerate(bad.values())))
            budget.take(refused.rows.nbytes)
            parts.append((np.fromiter(bad, np.int64, len(bad)), refused))
        return merge_by_position(parts)

    def _decoder(self, prefix: bytes, messages: Sequence[bytes], first: int) -> Decoder:
        """The decoder of messages with a prefix, the first of which is at a place."""
        try:
            return self._kept(prefix)
        except UnknownSchemaError as error:
            return _Unknown(str(error), self._target)
        except SchemaStopError as stop:
            stop.at(messages[first])

    def _decoder_or_refusal(self, prefix: bytes) -> Decoder:
        try:
            return self._compile(prefix)
        except UnknownSchemaError:
            raise
        except SchemaError as error:
            return Refusal(str(error), self._target)

    def _groups(self, messages: Sequence[bytes]) -> Iterator[tuple[bytes, Any]]:
        """The prefixes, and where the messages of each are, in order.

        What several messages begin with comes first: it is no garbage, so that more is known then. Where reading ends at a message
        that cannot be decoded, they come as the messages do.
        """
        if self._prefixes_of is None:
            found = pa.array([self._prefix_of(message) for message in messages], _BYTES)
        else:
            found = self._prefixes_of(column_of(messages))
        encoded = found.dictionary_encode()
        prefixes, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        counts = np.bincount(codes)
        ends = np.cumsum(counts)
        # Numbers of two bytes are sorted by their digits.
        order = np.argsort(
            codes.astype(np.uint16) if len(counts) <= 1 << 16 else codes, kind="stable"
        )
        comes_later = np.zeros_like(counts) if self._ends_at_bad else counts == 1
        for code in np.argsort(comes_later, kind="stable").tolist():
            yield prefixes[code], order[ends[code] - counts[code] : ends[code]]


def _decoded(decoder: Decoder, messages: Sequence[bytes]) -> Decoded:
    try:
        return decoder.decode(messages)
    except SchemaStopError as stop:
        stop.at(messages[0])

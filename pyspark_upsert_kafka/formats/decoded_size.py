"""How many bytes messages are decoded to: a few bytes of a message must not fill the memory.

Only *slots* are counted: the bytes that a value takes in a column even if it is NULL or empty. The characters of
texts and binaries are not counted, since the message has as many. A batch whose slots take more than MAX_HELD_BYTES
is decoded in parts; a message whose slots take more than MAX_ROW_BYTES cannot be decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pyspark_upsert_kafka.core.arrow import MAX_HELD_BYTES
from pyspark_upsert_kafka.core.bytes_column import total_size
from pyspark_upsert_kafka.formats.batches import nulls
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder, TooManyMessagesError
from pyspark_upsert_kafka.formats.decoding import UnreadableError

MAX_ROW_BYTES = 2 * MAX_HELD_BYTES
"""How many bytes the row of one message may take, without its texts and binaries, which are no longer than the message."""

_OFFSET = 4


def slot_bytes(kind: pa.DataType) -> float:
    """The bytes that one value takes without its characters, elements and entries.

    >>> slot_bytes(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))]))
    12.375
    """
    valid = 1 / 8
    if pa.types.is_struct(kind):
        return valid + sum(slot_bytes(field.type) for field in kind)
    if kind.num_fields or pa.types.is_string(kind) or pa.types.is_binary(kind):
        return valid + _OFFSET
    return valid + (0 if pa.types.is_null(kind) else kind.bit_width / 8)


def item_bytes(kind: pa.DataType) -> float:
    """What one element of an array takes, or one entry of a map."""
    return slot_bytes(kind.field(0).type)


class Budget:
    """How much memory some messages may take together, decoded.

    Args:
        messages: How many there are.
        begun: How many of them are being decoded; what decodes one after the other counts them here.
    """

    __slots__ = ("_messages", "_taken", "begun")

    def __init__(self, messages: int, begun: int | None = None) -> None:
        self._messages, self._taken = messages, 0.0
        self.begun = messages if begun is None else begun

    def take_text(self, text: str) -> None:
        """Notes a text that is longer than what stands for it in its message.

        Raises:
            TooManyMessagesError: They are too long together, and of more than one message.
            ValueError: Those of the one message are too long.
        """
        self.take(len(text))
        if self._taken > MAX_ROW_BYTES:
            raise ValueError(f"the texts of the message take more than {MAX_ROW_BYTES >> 20} MiB")

    def left(self) -> int:
        """How many bytes may be taken yet; of one message alone it is more."""
        most = MAX_HELD_BYTES if self._messages > 1 else MAX_ROW_BYTES
        return max(0, most - int(self._taken))

    def take(self, size: float) -> None:
        """Notes that more bytes are needed.

        Raises:
            TooManyMessagesError: They are more than MAX_HELD_BYTES, and of more than one message.
        """
        self._taken += size
        if self._taken > MAX_HELD_BYTES and self._messages > 1:
            # More may follow of those begun: with half of them at most the parts soon get small enough.
            fitting = int(self.begun * MAX_HELD_BYTES / self._taken)
            raise TooManyMessagesError(max(1, min(fitting, self._messages // 2)))


def check_row(size: float) -> None:
    """Raises UnreadableError when one message takes too many bytes."""
    if size > MAX_ROW_BYTES:
        raise UnreadableError(
            f"it would take more than {MAX_ROW_BYTES >> 20} MiB of memory beside its texts and binaries, which is the "
            "most that one message may: its arrays or maps have too many items for what each of them takes. Leave "
            "such a column, or fields within it, out of the table"
        )


@dataclass(frozen=True)
class Items:
    """What messages become at most, by their bytes.

    Args:
        each_byte: How many bytes each byte becomes, whatever it is.
        marks: Where that would be too much, items are counted by bytes that each of them has of its own: by such bytes,
            what an item takes. Empty = they have none.
        unmarked: How many bytes each byte becomes that is of no such item.
    """

    each_byte: float = 0
    marks: Mapping[bytes, float] = field(default_factory=dict)
    unmarked: float = 0

    def at_most(self, messages: Sequence[bytes]) -> float:
        """What all messages become together."""
        if not self.each_byte:
            return 0
        size = total_size(messages)
        most = self.each_byte * size
        if most <= MAX_HELD_BYTES or not self.marks:
            return most
        text = b"".join(messages)
        counted = sum(item * text.count(mark) for mark, item in self.marks.items() if item)
        return min(most, self.unmarked * size + counted)


@dataclass(frozen=True)
class Measure:
    """How much memory messages take, decoded, besides the slots of their rows.

    Args:
        items: What the items of arrays and maps take at most, of all messages together.
        while_read: What a message takes at most while it is read, one after the other.
        exactly: What one message takes of both; asked where they give too much. None = they are exact.
        constants: Bytes that each row gets although its message does not hold them, as those of defaults.
    """

    items: Items = Items()
    while_read: Items = Items()
    exactly: Callable[[bytes], float] | None = None
    constants: float = 0

    def at_most(self, messages: Sequence[bytes]) -> float:
        """What the items of all messages take, and the largest message while it is read."""
        enough = MAX_HELD_BYTES if len(messages) > 1 else 0
        large: list[bytes] = []
        each_byte = self.while_read.each_byte
        if each_byte and each_byte * total_size(messages) > enough:
            large = [each for each in messages if each_byte * len(each) > enough]
        read = max((self.while_read.at_most([each]) for each in large), default=0)
        return self.items.at_most(messages) + read


class BoundedDecoder:
    """Decodes messages whose rows take no more than they may.

    Args:
        decoder: Decodes them.
        schema: The columns.
        measure: What messages take beside the slots of their rows.
        skip_bad: Pass over a message that takes too much, for a format's ``ignore-parse-errors``.
    """

    def __init__(
        self, decoder: Decoder, schema: pa.Schema, measure: Measure, *, skip_bad: bool = False
    ) -> None:
        self.decoder, self._schema, self._skip_bad = decoder, schema, skip_bad
        self._measure = measure
        self._row = slot_bytes(pa.struct(list(schema))) + measure.constants

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """All messages.

        Raises:
            TooManyMessagesError: They are too many.
        """
        size = self._row * len(messages) + self._measure.at_most(messages)
        if size > MAX_HELD_BYTES:
            Budget(len(messages)).take(size)
            try:
                self._check_one(messages[0], size)
            except UnreadableError as why:
                return self._without(str(why))
        return self.decoder.decode(messages)

    def _check_one(self, message: bytes, at_most: float) -> None:
        if at_most > MAX_ROW_BYTES and self._measure.exactly is not None:
            at_most = self._row + self._measure.exactly(message)
        check_row(at_most)

    def _without(self, why: str) -> Decoded:
        """One message that is not read."""
        rows = nulls(self._schema, 1)
        return Decoded(rows, skipped=frozenset({0})) if self._skip_bad else Decoded(rows, {0: why})

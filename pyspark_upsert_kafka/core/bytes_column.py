"""Keys or values of many messages as one Arrow column, which is a list to whoever reads them one by one.

Arrow is loaded where there are messages: planning needs none of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


class BytesColumn(Sequence[Any]):
    r"""Keys or values, each of them bytes or None.

    Args:
        column: The same in Arrow.

    >>> found = BytesColumn.of([b"k", None, b""])
    >>> found[0], found[1:].column.null_count, found.size
    (b'k', 1, 1)
    """

    def __init__(self, column: pa.LargeBinaryArray) -> None:
        self.column = column

    @classmethod
    def of(cls, values: Iterable[bytes | None]) -> BytesColumn:
        """The column of some values."""
        import pyarrow as pa

        return cls(pa.array(values, pa.large_binary()))

    @classmethod
    def joined(cls, parts: Sequence[BytesColumn]) -> BytesColumn:
        """The values of all parts, one part after the other; there must be one at least."""
        import pyarrow as pa

        columns = [part.column for part in parts]
        return cls(columns[0] if len(columns) == 1 else pa.concat_arrays(columns))

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return BytesColumn(self.column[at])
        if "_values" in self.__dict__:  # taking it from the list costs a tenth
            return self._values[at]
        return self.column[int(at)].as_py()

    def __iter__(self) -> Iterator[bytes | None]:
        return iter(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._values == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._values)

    @property
    def nulls(self) -> int:
        """How many values are None."""
        return int(self.column.null_count)

    @property
    def size(self) -> int:
        """The bytes of all values together."""
        ends = offsets_of(self.column)
        return int(ends[-1] - ends[0])

    def take(self, places: Any) -> BytesColumn:
        """The values at these places."""
        import pyarrow as pa

        return BytesColumn(self.column.take(pa.array(places, pa.int64())))

    def where(self, mask: Any) -> BytesColumn:
        """The values for which the mask is true."""
        import pyarrow as pa

        return BytesColumn(self.column.filter(pa.array(mask, pa.bool_())))

    @cached_property
    def _values(self) -> list[bytes | None]:
        values: list[bytes | None] = self.column.to_pylist()
        return values


def column_of(messages: Sequence[bytes]) -> pa.LargeBinaryArray:
    """Messages as an Arrow column; of a `BytesColumn` its own."""
    if isinstance(messages, BytesColumn):
        return messages.column
    import pyarrow as pa

    return pa.array(messages, pa.large_binary())


def total_size(messages: Sequence[bytes]) -> int:
    """The bytes of all messages together."""
    return messages.size if isinstance(messages, BytesColumn) else sum(map(len, messages))


def some_of(messages: Sequence[bytes], places: Any) -> Sequence[bytes]:
    """The messages at some places."""
    if isinstance(messages, BytesColumn):
        return messages.take(places)
    return [messages[at] for at in places]


def lines_of(messages: Sequence[bytes]) -> bytes:
    r"""All messages as one text, a line break behind each.

    >>> lines_of([b"a", b"b"]), lines_of(BytesColumn.of([b"a", b"b"]))
    (b'a\nb\n', b'a\nb\n')
    """
    if not isinstance(messages, BytesColumn):
        return b"\n".join([*messages, b""])
    if not messages:
        return b""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = messages.column
    whole = pa.ListArray.from_arrays(pa.array([0, len(column)], pa.int32()), column)
    text = pc.binary_join(whole, pa.scalar(b"\n", column.type)).buffers()[2]
    return b"".join([memoryview(text), b"\n"])


def offsets_of(column: pa.LargeBinaryArray) -> Any:
    """Where in its buffer each value of a column begins, and where the last one ends."""
    import numpy as np

    if not len(column):
        return np.zeros(1, np.int64)
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset :][: len(column) + 1]


def first_bytes(column: pa.LargeBinaryArray) -> npt.NDArray[np.int16]:
    r"""The first byte of each value of a column; 256 = it has none.

    >>> import pyarrow as pa
    >>> first_bytes(pa.array([b"\0a", b"", b"b"], pa.large_binary())).tolist()
    [0, 256, 98]
    """
    import numpy as np

    found = np.full(len(column), 256, np.int16)
    bounds = offsets_of(column)
    filled = bounds[:-1] < bounds[1:]
    if filled.any():
        found[filled] = np.frombuffer(column.buffers()[2], np.uint8)[bounds[:-1][filled]]
    return found


def not_utf8(messages: pa.BinaryArray | pa.LargeBinaryArray) -> npt.NDArray[np.bool_]:
    r"""Which messages are no texts in UTF-8. NULL counts as one that is.

    >>> import pyarrow as pa
    >>> not_utf8(pa.array([b"a", b"\xff", None])).tolist(), not_utf8(pa.array([b"a"])).tolist()
    ([False, True, False], [False])
    """
    import numpy as np
    import pyarrow as pa

    try:
        messages.cast(pa.string())
    except pa.ArrowInvalid:
        return np.fromiter(
            map(_is_no_text, messages.fill_null(b"").to_pylist()), np.bool_, len(messages)
        )
    return np.zeros(len(messages), np.bool_)


def _is_no_text(message: bytes) -> bool:
    try:
        message.decode()
    except UnicodeDecodeError:
        return True
    return False

"""enum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StringType

from pyspark_upsert_kafka.formats.avro.cursors import Cursor, Cursors
from pyspark_upsert_kafka.formats.avro.errors import unreadable
from pyspark_upsert_kafka.formats.avro.leaf_types import (
    ColumnReader,
    Leaf,
    ReadField,
    ValueReader,
    Writer,
    WrittenField,
)
from pyspark_upsert_kafka.formats.avro.leaf_types.numbers import write_integers
from pyspark_upsert_kafka.formats.avro.model import Enum
from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts

_SHOWN_SYMBOLS = 20


@dataclass(frozen=True)
class Symbol(Leaf):
    """The number of one of an enum's symbols; None stands for one that the reader does not know."""

    path: str
    symbols: tuple[str | None, ...]
    arrow: pa.DataType | None = None

    @property
    def constant_bytes(self) -> int:
        """Those of the longest symbol: the message has its number only."""
        return 0 if self.arrow is None else max((len(s or "") for s in self.symbols), default=0)

    def column_reader(self) -> ColumnReader:
        """Leaves messages with another number, or an unknown symbol, to the row path."""
        count = len(self.symbols)
        skipped = self.arrow is None
        known = np.array([skipped or symbol is not None for symbol in self.symbols] + [False])
        symbols = pa.array([*self.symbols, None], pa.string())

        def read(cursors: Cursors) -> pa.Array | None:
            numbers = cursors.longs()
            numbers[(numbers < 0) | (numbers > count)] = count
            cursors.leave(~known[numbers])
            return None if skipped else symbols.take(pa.array(numbers))

        return read

    def value_reader(self) -> ValueReader:
        """Refuses another number, and an unknown symbol unless it is skipped."""
        path, symbols, skipped = self.path, self.symbols, self.arrow is None

        def read(cursor: Cursor) -> str | None:
            number = cursor.long(path)
            if not 0 <= number < len(symbols):
                raise unreadable(path, f"there is no symbol {number} in an enum of {len(symbols)}")
            if symbols[number] is None and not skipped:
                raise unreadable(path, f"symbol {number} is none that the reader's schema knows")
            return symbols[number]

        return read


def read_symbol(field: ReadField) -> Leaf | None:
    """An enum into a STRING."""
    written, seen = field.written, field.read_as
    if not pa.types.is_string(field.column) or not isinstance(written, Enum):
        return None
    symbols: tuple[str | None, ...] = written.symbols
    if isinstance(seen, Enum) and seen is not written:
        symbols = tuple(s if s in seen.symbols else seen.default for s in symbols)
    return Symbol(field.path, symbols, field.column)


def write_symbol(field: WrittenField) -> Writer | None:
    """A STRING, which must be one of the symbols."""
    if not isinstance(field.column, StringType) or not isinstance(field.written, Enum):
        return None
    return partial(_symbols, field.written)


def _symbols(enum: Enum, array: pa.Array) -> ByteParts:
    import pyarrow.compute as pc

    positions = pc.index_in(array, value_set=pa.array(enum.symbols, array.type))
    if positions.null_count:
        seen = array.filter(positions.is_null())[0].as_py()
        known = ", ".join(enum.symbols[:_SHOWN_SYMBOLS])
        raise ValueError(f"{seen!r} is no symbol of the enum {enum.name!r}: {known}")
    return write_integers(positions)

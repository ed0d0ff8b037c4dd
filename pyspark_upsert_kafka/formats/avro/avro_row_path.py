"""The row path: one message to its values, or to what is wrong with it.

The resolved schema is compiled into a tree of functions once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pyspark_upsert_kafka.formats.avro.avro_cursors import Cursor
from pyspark_upsert_kafka.formats.avro.avro_leaf_readers import ValueReader
from pyspark_upsert_kafka.formats.avro.avro_types import unreadable
from pyspark_upsert_kafka.formats.avro.resolved_schema import (
    Node,
    RecordNode,
    RecursiveNode,
    RepeatedNode,
    ResolvedSchema,
    UnionNode,
    added_by_item,
    least_bytes,
)
from pyspark_upsert_kafka.formats.decoded_size import Budget
from pyspark_upsert_kafka.formats.decoding import UnreadableError

MOST_EMPTY = 10_000
"""How many items that take no bytes a message may have: a few bytes must not fill the memory."""

DEEPEST = 100
"""How deep a record may stand within itself."""


def value_reader(schema: ResolvedSchema, prefix_length: int = 0) -> Callable[[bytes, Budget], Any]:
    """Compiles the function from a message to the value of its datum.

    Its second argument is how large the messages of a batch may be decoded together. It raises UnreadableError or
    TooManyMessagesError.
    """
    readers = _Readers(schema.records)
    readers.records.update((name, readers.reader(node)) for name, node in schema.records.items())
    read = readers.reader(schema.row)

    def value(message: bytes, budget: Budget) -> Any:
        cursor = Cursor(message, prefix_length, budget)
        try:
            seen = read(cursor)
        except RecursionError:
            raise UnreadableError("records stand within themselves too often") from None
        if cursor.remaining:
            are = "is" if cursor.remaining == 1 else "are"
            raise UnreadableError(f"{_byte_count(cursor.remaining)} {are} left after the datum")
        return seen

    return value


@dataclass(frozen=True)
class _Readers:
    """Compiles the nodes of a resolved schema.

    Args:
        nodes: The records that stand within themselves, by their names.
        records: The functions that read these.
        skipped: The functions that read skipped records, each of which is compiled once, however often it is reached.
    """

    nodes: Mapping[str, Node]
    records: dict[str, ValueReader] = field(default_factory=dict)
    skipped: dict[int, ValueReader] = field(default_factory=dict)

    def reader(self, node: Node) -> ValueReader:
        if isinstance(node, RecordNode):
            return self._record(node) if node.arrow is not None else self._skipped(node)
        if isinstance(node, UnionNode):
            return self._union(node)
        if isinstance(node, RepeatedNode):
            return self._repeated(node)
        if isinstance(node, RecursiveNode):
            return self._recursive(node)
        return node.value_reader()

    def _skipped(self, node: RecordNode) -> ValueReader:
        if id(node) not in self.skipped:
            parts = [self.reader(part) for part, _ in node.written]

            def read(cursor: Cursor) -> None:
                for part in parts:
                    part(cursor)

            self.skipped[id(node)] = read
        return self.skipped[id(node)]

    def _record(self, node: RecordNode) -> ValueReader:
        parts = [(slot, self.reader(part)) for part, slot in node.written]
        empty = [node.missing.get(slot) for slot in range(len(node.arrow or ()))]

        def read(cursor: Cursor) -> tuple[Any, ...]:
            values = empty.copy()
            for slot, part in parts:
                value = part(cursor)
                if slot is not None:
                    values[slot] = value
            # A tuple takes a fifth of what a dict does.
            return tuple(values)

        return read

    def _union(self, node: UnionNode) -> ValueReader:
        branches, path = [self.reader(branch) for branch in node.branches], node.path

        def read(cursor: Cursor) -> Any:
            number = cursor.long(path)
            if not 0 <= number < len(branches):
                raise unreadable(path, f"there is no branch {number} in a union of {len(branches)}")
            return branches[number](cursor)

        return read

    def _repeated(self, node: RepeatedNode) -> ValueReader:
        if node.arrow is None:
            return self._skipped_items(node)
        read = self._items(node)
        if not pa.types.is_map(node.arrow):
            return read
        return lambda cursor: list(dict(read(cursor)).items())

    def _items(self, node: RepeatedNode) -> ValueReader:
        path, item, least = node.path, self.reader(node.item), self._least_bytes(node)
        added = added_by_item(node)

        def read(cursor: Cursor) -> list[Any]:
            items: list[Any] = []
            while count := cursor.long(path):
                if count < 0:
                    cursor.long(path)  # the size of the block
                count = abs(count)
                _check_items(cursor, count, path, least, added)
                begin = cursor.at
                items.append(item(cursor))
                if cursor.at == begin:  # so it is with all of them
                    items += items[-1:] * (count - 1)
                else:
                    items += [item(cursor) for _ in range(count - 1)]
            return items

        return read

    def _skipped_items(self, node: RepeatedNode) -> ValueReader:
        path, item, least = node.path, self.reader(node.item), self._least_bytes(node)

        def read(cursor: Cursor) -> None:
            while count := cursor.long(path):
                if count < 0:
                    cursor.take(cursor.long(path), path, "block")
                    continue
                _check_items(cursor, count, path, least, 0)
                for _ in range(count):
                    begin = cursor.at
                    item(cursor)
                    if cursor.at == begin:  # so it is with all of them
                        break

        return read

    def _least_bytes(self, node: RepeatedNode) -> int:
        """How many bytes an item takes at least."""
        item = node.item
        return least_bytes(self.nodes[item.name] if isinstance(item, RecursiveNode) else item)

    def _recursive(self, node: RecursiveNode) -> ValueReader:
        name = node.name

        def read(cursor: Cursor) -> None:
            cursor.depth += 1
            if cursor.depth > DEEPEST:
                raise UnreadableError(f"{name} stands within itself more than {DEEPEST} times")
            self.records[name](cursor)
            cursor.depth -= 1

        return read


def _check_items(cursor: Cursor, count: int, path: str, least: int, added: float) -> None:
    """Whether a block may have this number of items, given the bytes that each takes and adds."""
    if least and count * least > cursor.remaining:
        raise unreadable(path, f"there are {count} items in {_byte_count(cursor.remaining)}")
    cursor.empty += 0 if least else count
    if cursor.empty > MOST_EMPTY:
        raise unreadable(path, f"there are more than {MOST_EMPTY} items that take no bytes")
    cursor.add(count * added)


def _byte_count(count: int) -> str:
    """A number of bytes."""
    return "1 byte" if count == 1 else f"{count} bytes"

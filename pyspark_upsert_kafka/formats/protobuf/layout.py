"""What the messages of one descriptor may hold, by the tags of the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark_upsert_kafka.formats.protobuf.descriptors import is_repeated
from pyspark_upsert_kafka.formats.protobuf.wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    Kind,
    wire_type,
)


@dataclass(frozen=True)
class Layout:
    """The fields of a message.

    Args:
        fields: The fields' descriptors.
        by_tag: The place of a field by each tag it may have.
        once: Places of the fields for which a message falls back to the row path when they occur twice: of
            a message the second is merged into the first, of a string each must be UTF-8, and an entry of a
            map is unknown as a whole when any of its values is a number that its closed enum lacks.
        repeated: Places of the fields that have any number of values.
        oneofs: The places of each group of fields of which a message holds the last one only.
        closed: Whether an unknown field matters: it may be an extension that the runtime knows, and
            an entry of a map that holds one is as a whole unknown to the runtime.
    """

    fields: tuple[Any, ...]
    by_tag: dict[int, int]
    once: frozenset[int]
    repeated: frozenset[int]
    oneofs: tuple[tuple[int, ...], ...]
    closed: bool

    @classmethod
    def of(cls, descriptor: Any) -> Layout:
        """The layout of a descriptor's messages."""
        fields = tuple(descriptor.fields)
        places = {field.name: place for place, field in enumerate(fields)}
        is_entry = descriptor.GetOptions().map_entry
        rivals = ([places[field.name] for field in oneof.fields] for oneof in descriptor.oneofs)
        return cls(
            fields=fields,
            by_tag={tag: place for place, field in enumerate(fields) for tag in _tags(field)},
            once=frozenset(
                place
                for place, field in enumerate(fields)
                if is_entry
                or (field.type in (Kind.MESSAGE, Kind.STRING) and not is_repeated(field))
            ),
            repeated=frozenset(place for place, field in enumerate(fields) if is_repeated(field)),
            oneofs=tuple(tuple(each) for each in rivals if len(each) > 1),
            closed=descriptor.is_extendable or is_entry,
        )

    def may_skip(self, tag: int) -> bool:
        """Whether what stands behind a tag that is no field's can be passed over.

        A field in another wire type than its own is an unknown one, too.
        """
        return not self.closed and tag & 7 in (VARINT, FIXED64, LENGTH, FIXED32)


def _tags(field: Any) -> tuple[int, ...]:
    """The tags by which a field may occur: a group by none, numbers that repeat also packed."""
    if field.type == Kind.GROUP:
        return ()
    number, wire = field.number << 3, wire_type(field.type)
    if is_repeated(field) and wire != LENGTH:
        return number | wire, number | LENGTH
    return (number | wire,)

"""Fields that proto2 calls ``required``, and which of them a message lacks.

The runtime's own list, ``FindInitializationErrors()``, is never asked for: where a message holds a map
of numbers or texts, upb loses count of where it stands, and a second map that it meets can end the
process (seen with protobuf 5.26 to 7.36). ``IsInitialized()`` keeps no such count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from pyspark_upsert_kafka.formats.protobuf.descriptors import is_map, is_repeated

_UNNAMED = "required fields are missing"

_NAMED = 10
"""So many missing fields are looked for; a message may lack millions."""


def is_required(field: Any) -> bool:
    """Whether every message must have the field."""
    # is_required takes the place of label from protobuf 6.31 on.
    required = getattr(field, "is_required", None)
    return bool(field.label == field.LABEL_REQUIRED if required is None else required)


def required_names(descriptor: Any) -> frozenset[str]:
    """Names of the required fields of a message, without those of the messages in it."""
    return frozenset(field.name for field in descriptor.fields if is_required(field))


def what_is_missing(message: Any) -> str:
    """What is said of a message that lacks required fields."""
    names = dict.fromkeys(islice(_missing(message, ""), _NAMED))
    # None is found when it is an extension that lacks them.
    return f"{_UNNAMED}: {', '.join(names)}" if names else _UNNAMED


def _missing(message: Any, path: str) -> Iterator[str]:
    for field in message.DESCRIPTOR.fields:
        if is_required(field) and not message.HasField(field.name):
            yield path + field.name
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None:
            name, parts = _parts(message, field)
            for part in parts:
                yield from _missing(part, f"{path}{name}.")


def _parts(message: Any, field: Any) -> tuple[str, Iterable[Any]]:
    """What a field with messages is called, and the messages in it."""
    value = getattr(message, field.name)
    if is_map(field):
        has_messages = field.message_type.fields_by_name["value"].message_type is not None
        return f"{field.name}{{}}", _values(value) if has_messages else ()
    if is_repeated(field):
        return f"{field.name}[]", value
    return field.name, [value] if message.HasField(field.name) else ()


def _values(entries: Any) -> Iterator[Any]:
    try:
        yield from entries.values()
    except UnicodeDecodeError:
        return  # a key that is not UTF-8: proto2 lets it pass, but it cannot be had

"""Cases of Protobuf: random files, messages of the runtime, spoiled messages, and what the runtime reads from them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError
from pyspark.sql.types import (
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    StringType,
    StructType,
    TimestampType,
)

from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    FieldKind,
    is_map,
    is_repeated,
    message_class,
    pool_of,
)
from tests.unit.formats.protobuf.codecs import descriptor_file
from tests.unit.formats.protobuf.corpus import PAYLOADS, varint
from tests.unit.formats.protobuf.mutations import records
from tools.fuzz.case import UNKNOWN, Case, NoRow, Peer, Table, share_of_bad, spoiled
from tools.fuzz.proto_schemas import Proto, chosen
from tools.fuzz.values import BITS, FIRST, LAST, Values, integers, texts

_POOL = 250
"""So many messages are made of each file; a case repeats them."""


def case(syntax: str, rng: Random, count: int) -> Case:
    """Messages of a random file in a syntax."""
    proto = Proto(rng, syntax)
    columns = chosen(rng, proto.message("Root", rng.choice([0, 1, 2])))
    data = descriptor_file(proto.text(), "--include_imports").read_bytes()
    message = message_class(
        pool_of(FileDescriptorSet.FromString(data).file).FindMessageTypeByName("t.Root")
    )
    options = {"descriptor-file": "set", "message-name": "Root"}
    for name in ("read-default-values", "ignore-parse-errors"):
        if rng.random() < 0.25:
            options[name] = "true"
    if rng.random() < 0.25:
        options["write-null-string-literal"] = "null"
    table = Table("protobuf", columns, rng.choice(["key", "value"]), options, {"set": data})
    make = _Messages(rng, message)
    pool = [make.one() for _ in range(_POOL)]
    messages, _ = spoiled(rng, rng.choices(pool, k=count), share_of_bad(rng), _spoil_fields)
    defaults = options.get("read-default-values") == "true"
    lenient = options.get("ignore-parse-errors") == "true"
    peer = None if lenient else _runtime_peer(message, columns, defaults=defaults)
    # With defaults all members of a oneof have values, of which only one can be written.
    again = not (defaults and "oneof" in proto.text())
    return Case(table, messages, again=again, peer=peer)


_ENUM = 14


def _runtime_peer(message: Any, columns: StructType, *, defaults: bool) -> Peer:
    """The peer of messages of a class."""
    return partial(_read_all, message, columns, defaults)


def _read_all(
    message: Any, columns: StructType, defaults: bool, messages: Sequence[bytes]
) -> list[Any]:
    return [_read(message, columns, defaults, data) for data in messages]


def _read(message: Any, columns: StructType, defaults: bool, data: bytes) -> Any:
    try:
        read = message.FromString(data)
    except DecodeError as why:
        return NoRow(why)
    if not read.IsInitialized():
        return NoRow("a required field is missing")
    try:
        return _row(read, columns, defaults)
    except _NotUtf8Error:
        return NoRow("a text is not UTF-8")
    except UnicodeDecodeError:  # so is a key of a map, which proto2 lets pass
        return UNKNOWN


class _NotUtf8Error(ValueError):
    """The runtime has bytes for a text; it lets that pass in proto2."""


def _row(message: Any, columns: StructType, defaults: bool) -> dict[str, Any]:
    fields = message.DESCRIPTOR.fields_by_name
    return {
        each.name: _value(message, fields[each.name], each.dataType, each.nullable, defaults)
        for each in columns.fields
    }


def _value(message: Any, field: Any, kind: DataType, nullable: bool, defaults: bool) -> Any:
    value = getattr(message, field.name)
    if is_map(field):
        key, inner = field.message_type.fields
        if not value:
            return [] if defaults or not nullable else None
        if isinstance(kind.keyType, StringType) and any(isinstance(k, bytes) for k in value):  # type: ignore[attr-defined]
            return UNKNOWN  # a key that is not UTF-8, which proto2 lets pass
        pairs = [
            (_one(key, k, kind.keyType, defaults), _one(inner, value[k], kind.valueType, defaults))
            for k in sorted(value)
        ]  # type: ignore[attr-defined]
        return UNKNOWN if any(k is UNKNOWN for k, _ in pairs) else pairs
    if is_repeated(field):
        items = [_one(field, item, kind.elementType, defaults) for item in value]  # type: ignore[attr-defined]
        return items if items or defaults or not nullable else None
    if field.has_presence and not message.HasField(field.name):
        if not nullable:
            return UNKNOWN
        if not defaults:
            return None
        return UNKNOWN if field.message_type else _one(field, value, kind, defaults)
    return _one(field, value, kind, defaults)


def _one(field: Any, value: Any, kind: DataType, defaults: bool) -> Any:
    if field.message_type:
        return _message(value, kind, defaults)
    if field.type == _ENUM and isinstance(kind, StringType):
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    if isinstance(kind, DecimalType):
        return Decimal(value)
    if isinstance(kind, StringType) and isinstance(value, bytes):
        raise _NotUtf8Error
    if type(kind) in BITS:
        half = 1 << (BITS[type(kind)] - 1)
        return value if -half <= value < half else UNKNOWN
    return value


def _message(value: Any, kind: DataType, defaults: bool) -> Any:
    if isinstance(kind, TimestampType | DayTimeIntervalType):
        micros = value.seconds * 1_000_000 + value.nanos // 1000
        within = 0 <= value.nanos < 10**9 and value.seconds >= 0 and FIRST <= micros <= LAST
        return micros if within else UNKNOWN
    assert isinstance(kind, StructType)
    return _row(value, kind, defaults)


_RANGES = {
    **dict.fromkeys((5, 15, 17), (-(2**31), 2**31 - 1)),
    **dict.fromkeys((3, 16, 18), (-(2**63), 2**63 - 1)),
    **dict.fromkeys((7, 13), (0, 2**32 - 1)),
    **dict.fromkeys((4, 6), (0, 2**64 - 1)),
}


class _Messages:
    """Makes messages.

    Args:
        rng: Decides.
        message: The class of the messages.
    """

    def __init__(self, rng: Random, message: Any) -> None:
        self._rng, self._message = rng, message
        self._pools: dict[int, list[Any]] = {
            kind: integers(rng, *bounds) for kind, bounds in _RANGES.items()
        }
        values = Values(rng)
        self._pools |= {
            1: values.pool(DoubleType()),
            2: values.pool(FloatType()),
            8: [True, False],
            9: texts(rng),
            12: [rng.randbytes(rng.randrange(9)) for _ in range(20)] + [b"", b"x" * 200],
        }

    def one(self) -> bytes:
        """A message."""
        message = self._message()
        self._fill(message, 3)
        return message.SerializePartialToString()

    def _fill(self, message: Any, depth: int) -> None:
        rng = self._rng
        small = message.DESCRIPTOR.full_name in (
            "google.protobuf.Timestamp",
            "google.protobuf.Duration",
        )
        for field in message.DESCRIPTOR.fields:
            if small and rng.random() < 0.8:
                high = 10**9 if field.name == "nanos" else 2**33
                setattr(message, field.name, rng.randrange(high))
            elif rng.random() < (0.97 if field.is_required else 0.7):
                self._set(message, field, depth)

    def _set(self, message: Any, field: Any, depth: int) -> None:
        rng, value = self._rng, getattr(message, field.name)
        if is_map(field):
            key, inner = field.message_type.fields
            for _ in range(rng.randrange(4)):
                at = self._leaf(key)
                if inner.message_type:
                    self._fill(value[at], depth - 1)
                else:
                    value[at] = self._leaf(inner)
        elif is_repeated(field):
            for _ in range(rng.choice([0, 1, 2, 3, 3, 20])):
                if field.message_type:
                    self._fill(value.add(), depth - 1)
                else:
                    value.append(self._leaf(field))
        elif field.message_type:
            value.SetInParent()
            self._fill(value, depth - 1)
        else:
            setattr(message, field.name, self._leaf(field))

    def _leaf(self, field: Any) -> Any:
        if field.type != FieldKind.ENUM:
            return self._rng.choice(self._pools[field.type])
        numbers = [value.number for value in field.enum_type.values]
        if not field.enum_type.is_closed and self._rng.random() < 0.2:
            return self._rng.choice([7, -1, 2**31 - 1])
        return self._rng.choice(numbers)


def _spoil_fields(rng: Random, message: bytes, depth: int = 3) -> bytes:
    """Fields in another order, twice, left out, of another wire type, or changed inside."""
    try:
        parts = records(message)
    except (IndexError, KeyError):  # it is no message
        return message
    if not parts:
        return _odd(rng)
    for _ in range(rng.randint(1, 2)):
        at, how = rng.randrange(len(parts)), rng.randrange(9)
        if how == 0:
            parts.insert(rng.randrange(len(parts) + 1), parts[at])
        elif how == 1:
            rng.shuffle(parts)
        elif how == 2:
            parts[at] = bytes([parts[at][0] ^ rng.randint(1, 7)]) + parts[at][1:]
        elif how == 3:
            parts.insert(rng.randrange(len(parts) + 1), _odd(rng))
        elif how == 4:
            parts[at] = parts[at][:1] + rng.choice(PAYLOADS)
        elif how == 5 and len(parts) > 1:
            del parts[at]
        elif how == 6:
            parts.insert(
                at,
                parts[at][:1]
                + rng.choice([b"\0", b"\1\0", b"\2\x08\1", b"\4\x08\1\x10\2", b"\2\x12\0"]),
            )
        elif depth:
            parts[at] = _inside(rng, parts[at], depth - 1)
    return b"".join(parts)


def _inside(rng: Random, part: bytes, depth: int) -> bytes:
    """A field with a length, with what is inside changed, whether or not it is a message."""
    at = 0
    while at < len(part) and part[at] >= 0x80:
        at += 1
    if part[0] & 7 != 2:
        return part
    head, rest = part[: at + 1], part[at + 1 :]
    start = 0
    while start < len(rest) and rest[start] >= 0x80:
        start += 1
    body = _spoil_fields(rng, rest[start + 1 :], depth)
    if rng.random() < 0.02:
        for _ in range(rng.choice([5, 98, 99, 100, 101, 120])):
            body = head + varint(len(body)) + body
    return head + varint(len(body)) + body


def _odd(rng: Random) -> bytes:
    number = rng.choice([*range(1, 16), 16, 17, 100, 2047, 2**29 - 1, 0, 2**29])
    return varint(number << 3 | rng.choice([0, 1, 2, 2, 3, 4, 5, 6])) + rng.choice(PAYLOADS)

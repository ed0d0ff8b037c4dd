"""Descriptors of messages: found in a descriptor file by options, and what they say of the kinds of fields.

Flink names a generated Java class; here a descriptor file and a message in it take its place. The kinds have the numbers
that descriptors use. Source: ``FieldDescriptorProto.Type`` in descriptor.proto, and
https://protobuf.dev/programming-guides/encoding.

The protobuf runtime is imported only when a codec is compiled: without it the package works but for the
formats that need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from enum import IntEnum
from pathlib import Path
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import text
from pyspark_upsert_kafka.formats.codec import CodecSpec

DESCRIPTOR_OPTIONS = (
    Option(
        "descriptor-file",
        text,
        None,
        "Required. A file made by `protoc --include_imports --descriptor_set_out`. It is read on the "
        "driver and on every worker, so its path must be readable on all of them.",
    ),
    Option(
        "message-name",
        text,
        None,
        "Required. The message type: its full name (`shop.v1.Order`), or the end of it (`Order`) if no "
        "other message type has the same end.",
    ),
)
"""Where the message is described."""

VARINT, FIXED64, LENGTH, START_GROUP, END_GROUP, FIXED32 = range(6)
"""The wire types; groups, which have two of them, are not read."""


class FieldKind(IntEnum):
    """``FieldDescriptor.type``."""

    DOUBLE = 1
    FLOAT = 2
    INT64 = 3
    UINT64 = 4
    INT32 = 5
    FIXED64 = 6
    FIXED32 = 7
    BOOL = 8
    STRING = 9
    GROUP = 10
    MESSAGE = 11
    BYTES = 12
    UINT32 = 13
    ENUM = 14
    SFIXED32 = 15
    SFIXED64 = 16
    SINT32 = 17
    SINT64 = 18


ZIGZAG = {FieldKind.SINT32, FieldKind.SINT64}
INT32 = {FieldKind.INT32, FieldKind.SINT32, FieldKind.SFIXED32}
UINT32 = {FieldKind.UINT32, FieldKind.FIXED32}
INT64 = {FieldKind.INT64, FieldKind.SINT64, FieldKind.SFIXED64}
UINT64 = {FieldKind.UINT64, FieldKind.FIXED64}
INTEGERS = INT32 | UINT32 | INT64 | UINT64

MEANING: dict[int, str] = {
    **dict.fromkeys(INT32 | {FieldKind.ENUM}, "i4"),
    **dict.fromkeys(UINT32, "u4"),
    **dict.fromkeys(INT64, "i8"),
    **dict.fromkeys(UINT64, "u8"),
    FieldKind.FLOAT: "f4",
    FieldKind.DOUBLE: "f8",
}
"""What a number of a kind is to numpy."""

_WIRE = {
    **dict.fromkeys((FieldKind.DOUBLE, FieldKind.FIXED64, FieldKind.SFIXED64), FIXED64),
    **dict.fromkeys((FieldKind.FLOAT, FieldKind.FIXED32, FieldKind.SFIXED32), FIXED32),
    **dict.fromkeys((FieldKind.STRING, FieldKind.BYTES, FieldKind.MESSAGE), LENGTH),
}


def wire_type(kind: int) -> int:
    """The wire type of one value of a kind."""
    return _WIRE.get(FieldKind(kind), VARINT)


def bounds(kind: int) -> tuple[int, int]:
    """The smallest and the largest value of an integer kind; an enum is an ``int32``."""
    if kind in UINT32 | UINT64:
        return 0, 2**32 - 1 if kind in UINT32 else 2**64 - 1
    bits = 63 if kind in INT64 else 31
    return -(2**bits), 2**bits - 1


_HOW = "Make it with: protoc --include_imports --descriptor_set_out=FILE your.proto"
_NEAREST = 3


def message_descriptor(spec: CodecSpec) -> Any:
    """The ``google.protobuf.descriptor.Descriptor`` that the options of a side name.

    Raises:
        OptionError: An option is missing, the runtime is not installed, the file cannot be read, is no descriptor set
            or lacks an import, or the name is unknown or ambiguous.
    """
    prefix = f"{spec.side}.protobuf."
    for option in DESCRIPTOR_OPTIONS:
        if spec.options[option.name] is None:
            raise OptionError(
                f"Option '{prefix}{option.name}' is missing; the protobuf format needs it. {option.help}"
            )
    check_runtime("protobuf")
    path = spec.options["descriptor-file"]
    at = f"Option '{prefix}descriptor-file': {path!r}"
    files = _files(path, at)
    try:
        pool = pool_of(files)
    except TypeError as why:
        raise OptionError(f"{at} cannot be used: {why}. {_HOW}") from None
    names = [name for file in files for name in names_of(file)]
    name_option = f"Option '{prefix}message-name'"
    return pool.FindMessageTypeByName(
        full_name(spec.options["message-name"], names, name_option, repr(path))
    )


def check_runtime(format_name: str) -> None:
    """Raises an OptionError when the protobuf runtime, which the format needs, is not installed."""
    try:
        import google.protobuf  # noqa: F401
    except ImportError:
        raise OptionError(
            f"The {format_name} format needs the protobuf runtime: "
            "pip install 'pyspark-upsert-kafka[protobuf]'."
        ) from None


def pool_of(files: Iterable[Any]) -> Any:
    """The descriptors of some ``FileDescriptorProto``, of which each stands behind those that it imports.

    Raises:
        TypeError: They do not make sense together.
    """
    from google.protobuf import descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def message_class(descriptor: Any) -> Any:
    """The class whose instances are messages of that descriptor."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(descriptor)


def parse(message: Any, data: bytes) -> Any:
    """The message in ``data``. Raises ValueError when there is none."""
    from google.protobuf.message import DecodeError

    try:
        return message.FromString(data)
    except DecodeError as why:
        raise ValueError(str(why)) from None


def is_repeated(field: Any) -> bool:
    """Whether a field may occur many times; maps are such fields."""
    # is_repeated takes the place of label from protobuf 6.31 on.
    repeated = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if repeated is None else repeated)


def is_map(field: Any) -> bool:
    """Whether a field is a map: a repeated message of keys and values."""
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def is_required(field: Any) -> bool:
    """Whether every message must have the field."""
    # is_required takes the place of label from protobuf 6.31 on.
    required = getattr(field, "is_required", None)
    return bool(field.label == field.LABEL_REQUIRED if required is None else required)


def required_names(descriptor: Any) -> frozenset[str]:
    """Names of the required fields of a message, without those of the messages in it."""
    return frozenset(field.name for field in descriptor.fields if is_required(field))


def enum_names(enum: Any) -> dict[int, str]:
    """The name of each number; of aliases the first one, as in Java."""
    names: dict[int, str] = {}
    for value in enum.values:
        names.setdefault(value.number, value.name)
    return names


def is_packed(field: Any) -> bool:
    """Whether the runtime writes a repeated field packed; it is asked by writing one element."""
    if wire_type(field.type) == LENGTH:
        return False
    message = message_class(field.containing_type)()
    getattr(message, field.name).append(field.enum_type.values[0].number if field.enum_type else 0)
    return bool(message.SerializePartialToString()[0] & 7 == 2)


def _files(path: str, at: str) -> list[Any]:
    """The files of the descriptor set; each stands behind those that it imports."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    try:
        data = Path(path).read_bytes()
    except OSError as why:
        raise OptionError(
            f"{at} cannot be read here: {why.strerror}. The path must be readable on the "
            "driver and on every worker."
        ) from None
    try:
        files = parse(FileDescriptorSet, data).file
    except ValueError:
        files = []
    if not files or not all(file.name for file in files):
        raise OptionError(f"{at} is not a descriptor set. {_HOW}")
    known = {file.name for file in files}
    for file in files:
        for imported in file.dependency:
            if imported not in known:
                raise OptionError(f"{at} lacks '{imported}', which '{file.name}' imports. {_HOW}")
    return list(files)


def names_of(file: Any) -> Iterator[str]:
    """The full names of all messages that a ``FileDescriptorProto`` defines, in their order."""
    return _names(file.package, file.message_type)


def _names(scope: str, messages: Any) -> Iterator[str]:
    for message in messages:
        if not message.options.map_entry:
            name = f"{scope}.{message.name}" if scope else message.name
            yield name
            yield from _names(name, message.nested_type)


def full_name(wanted: str, names: list[str], option: str, where: str) -> str:
    """The name that is the wanted one or, alone among the names, ends in it.

    Args:
        wanted: The name, or the end of it.
        names: The full names of all messages.
        option: The option that says which is wanted, for errors.
        where: What defines the messages, for errors.

    Raises:
        OptionError: There is no such message, or there are several.
    """
    found = [wanted] if wanted in names else [name for name in names if name.endswith(f".{wanted}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise OptionError(
            f"{option}: '{wanted}' is ambiguous; it may be {', '.join(sorted(found))}."
        )
    by_end = {name.rpartition(".")[2]: name for name in names} | {name: name for name in names}
    near = {by_end[end]: None for end in get_close_matches(wanted, by_end, _NEAREST, 0.5)}
    raise OptionError(
        f"{option}: {where} has no message '{wanted}'. "
        f"{'Did you mean' if near else 'It has'}: {', '.join(near or sorted(names)[:10])}?"
    )

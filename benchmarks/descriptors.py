"""The benchmark's rows as Protobuf messages."""

from __future__ import annotations

from pathlib import Path

_FIELDS = ("id", "name", "region", "score", "clicks", "active", "updated")


def descriptor_file(folder: Path) -> dict[str, str]:
    """Options of both sides for the format ``protobuf``; the descriptor file is put into the folder."""
    from google.protobuf import timestamp_pb2
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

    kinds = (
        Field.TYPE_INT64, Field.TYPE_STRING, Field.TYPE_STRING, Field.TYPE_DOUBLE,
        Field.TYPE_INT32, Field.TYPE_BOOL, Field.TYPE_MESSAGE,
    )  # fmt: skip
    timestamps = FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamps)
    rows = FileDescriptorProto(
        name="bench.proto", package="bench", syntax="proto3", dependency=[timestamps.name]
    )
    for name, count in (("Key", 1), ("Row", len(_FIELDS))):
        message = rows.message_type.add(name=name)
        for number, (field, kind) in enumerate(zip(_FIELDS[:count], kinds, strict=False), start=1):
            made = message.field.add(
                name=field, number=number, type=kind, label=Field.LABEL_OPTIONAL
            )
            if kind == Field.TYPE_MESSAGE:
                made.type_name = ".google.protobuf.Timestamp"
    path = folder / "bench.desc"
    path.write_bytes(FileDescriptorSet(file=[timestamps, rows]).SerializeToString())
    return {
        f"{side}.protobuf.{option}": value
        for side, message in (("key", "bench.Key"), ("value", "bench.Row"))
        for option, value in (("descriptor-file", str(path)), ("message-name", message))
    }

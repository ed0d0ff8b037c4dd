"""A Protobuf schema: a ``.proto`` file and those that it imports, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.proto_registry.message_indexes import Indexes
from pyspark_upsert_kafka.formats.protobuf.descriptors import names_of, pool_of


@dataclass(frozen=True)
class ProtoSchema:
    """A schema.

    Args:
        origin: Where it comes from, for errors.
        files: Its ``FileDescriptorProto``, each behind those that it imports, so that the schema's own is the last.
    """

    origin: str
    files: Sequence[Any]

    @property
    def file(self) -> Any:
        """The schema's own file."""
        return self.files[-1]

    @property
    def names(self) -> list[str]:
        """The full names of the file's messages."""
        return list(names_of(self.file))

    def name_at(self, indexes: Indexes) -> str:
        """The full name of the message that has these indexes.

        Raises:
            SchemaError: There is none.
        """
        messages, parts = self.file.message_type, [self.file.package] if self.file.package else []
        for index in indexes:
            written = _written(messages)
            if index >= len(written):
                raise SchemaError(f"{self.origin} has no message with the indexes {list(indexes)}.")
            parts.append(written[index].name)
            messages = written[index].nested_type
        return ".".join(parts)

    def indexes_of(self, name: str) -> Indexes:
        """The indexes of the message with this full name."""
        indexes, messages = [], self.file.message_type
        for part in name.removeprefix(f"{self.file.package}.").split("."):
            written = [message.name for message in _written(messages)]
            indexes.append(written.index(part))
            messages = _written(messages)[indexes[-1]].nested_type
        return tuple(indexes)

    def descriptor(self, name: str) -> Any:
        """The ``Descriptor`` of the message with this full name.

        Raises:
            SchemaError: The files do not make sense together.
        """
        try:
            return pool_of(self.files).FindMessageTypeByName(name)
        except TypeError as why:
            raise SchemaError(f"{self.origin} cannot be used: {why}.") from None


def _written(messages: Any) -> list[Any]:
    """Those that stand in the text: the entries of maps do not, and are not counted."""
    return [message for message in messages if not message.options.map_entry]

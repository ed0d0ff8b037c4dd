"""Connect's schemas, as Connect's JSON converter writes them, and what a name in one means: a semantic type.

Source: ``JsonConverter.asConnectSchema`` of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType, StringType

from pyspark_upsert_kafka.formats.decoding import UnreadableError
from pyspark_upsert_kafka.formats.json.json_document import parse_object

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ConnectSchema:
    """A schema, or that of a field in it.

    Args:
        type: ``int32``, ``string``, ``array``, ``map``, ``struct``, ...; another one than Connect's is unknown.
        name: The semantic type, or the name of a struct.
        parameters: What the semantic type is declared with, such as ``scale``.
        optional: Whether it may be null.
        fields: Of a struct, by their names.
        items: Of an array; of a map the schema of its values.
        keys: Of a map.
    """

    type: str
    name: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    optional: bool = False
    fields: Mapping[str, ConnectSchema] = field(default_factory=dict, hash=False)
    items: ConnectSchema | None = None
    keys: ConnectSchema | None = None

    def shown(self) -> str:
        """The schema in an error: ``io.debezium.time.Date (int32)``."""
        return f"{self.name} ({self.type})" if self.name else self.type


def parse_connect_schema(text: bytes) -> ConnectSchema | None:
    """The schema that a JSON text declares; None = the text is ``null``.

    Raises:
        UnreadableError: It declares none.
    """
    return None if text == b"null" else connect_schema(parse_object(text))


def connect_schema(declared: Any, path: str = "schema") -> ConnectSchema:
    """The schema that parsed JSON declares.

    Args:
        declared: The JSON.
        path: Where it stands in the message, for errors.

    Raises:
        UnreadableError: It declares none.
    """
    kind = declared.get("type") if isinstance(declared, dict) else None
    if not isinstance(kind, str):
        raise UnreadableError(f"'{path}' is no Connect schema: it has no 'type'")
    name, parameters = declared.get("name"), declared.get("parameters")
    return ConnectSchema(
        kind,
        name if isinstance(name, str) else None,
        texts(parameters),
        declared.get("optional") is True,
        _fields(declared, path) if kind == "struct" else {},
        _part(declared, {"array": "items", "map": "values"}.get(kind), path),
        _part(declared, "keys" if kind == "map" else None, path),
    )


def texts(parameters: Any) -> Mapping[str, str]:
    """The parameters of a semantic type, those that are texts."""
    if not isinstance(parameters, dict):
        return {}
    return {name: value for name, value in parameters.items() if type(value) is str}


def _fields(declared: Mapping[str, Any], path: str) -> Mapping[str, ConnectSchema]:
    listed = declared.get("fields")
    if not isinstance(listed, list):
        raise UnreadableError(f"'{path}' is no Connect schema: 'fields' of a struct is no array")
    return dict(_field(each, f"{path}.fields[{at}]") for at, each in enumerate(listed))


def _field(declared: Any, path: str) -> tuple[str, ConnectSchema]:
    name = declared.get("field") if isinstance(declared, dict) else None
    if not isinstance(name, str):
        raise UnreadableError(f"'{path}' is no Connect schema: a field of a struct has no 'field'")
    return name, connect_schema(declared, path)


def _part(declared: Mapping[str, Any], name: str | None, path: str) -> ConnectSchema | None:
    return None if name is None else connect_schema(declared.get(name), f"{path}.{name}")


@dataclass(frozen=True)
class ReadAs:
    """How a field is read into a column.

    Args:
        physical: The type as which the plain decoder reads it.
        column: A column of that type to one of the table's; ValueError = it refuses one of the values. None = it
            refuses all.
        value: A value that is not null, as Arrow gives it to Python, to one that ``pyarrow.array`` takes; ValueError =
            it is bad. None = the column of the physical type is the table's.
    """

    physical: DataType
    column: Callable[[pa.Array], pa.Array] | None = None
    value: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class SemanticType:
    """What a name of a schema means.

    Args:
        declared_of: The types of Connect that it may be declared of; with another one the name means nothing here.
        column: The type that it means; None = what its parts mean.
        read: How it is read into a column; None = the column cannot hold it.
        fits: The types of columns that can hold it, for errors.
    """

    declared_of: frozenset[str]
    column: Callable[[ConnectSchema], DataType] | DataType | None
    read: Callable[[ConnectSchema, DataType], ReadAs | None]
    fits: str


TEXT, BYTES, STRUCT = frozenset({"string"}), frozenset({"bytes"}), frozenset({"struct"})
"""What most types that are no numbers are declared of."""


def read_text(_schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """A text, as it is."""
    return ReadAs(wanted) if isinstance(wanted, StringType) else None


PLAIN_TEXT = SemanticType(TEXT, StringType(), read_text, "STRING")
"""What is no more than a text here."""


def fitting(number: int, kind: str, bits: int = 64) -> int:
    """The number. Raises ValueError when it has no room in so many bits."""
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"out of range of {kind}")
    return number

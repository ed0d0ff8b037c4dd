"""The values that Amazon's serializers write for tests/unit/registry/glue_messages.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_AVRO = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
  {"name": "id", "type": "long"},
  {"name": "name", "type": ["null", "string"], "default": null},
  {"name": "amount", "type": "double"},
  {"name": "tags", "type": {"type": "array", "items": "string"}}
]}"""

_JSON = """{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {
  "id": {"type": "integer"}, "name": {"type": ["string", "null"]}, "amount": {"type": "number"}
}}"""

_PROTO = """syntax = "proto3";
package shop;

message Zebra {
  map<string, int64> stripes = 1;
  message Young {
    int64 id = 1;
  }
  message Adult {
    int64 id = 1;
    Young young = 2;
  }
}

message Order {
  int64 id = 1;
  optional string name = 2;
  double amount = 3;
}

message order {
  int64 id = 1;
}
"""

_MANY = 'syntax = "proto3";\npackage shop;\n' + "".join(
    f"message M{number} {{ int64 id = 1; }}\n" for number in range(300)
)


@dataclass(frozen=True)
class Case:
    """One value.

    Args:
        kind: ``AVRO``, ``JSON`` or ``PROTOBUF``.
        schema: Its schema.
        columns: The columns of a table, as Spark's DDL.
        row: The value, as a row of these columns.
        value: The value as JSON, as Avro's JSON decoder and Jackson take it.
        type: Of Protobuf which message it is, without the package.
    """

    kind: str
    schema: str
    columns: str
    row: dict[str, Any]
    value: str = ""
    type: str | None = None


CASES = [
    Case(
        "AVRO",
        _AVRO,
        "id BIGINT NOT NULL, name STRING, amount DOUBLE NOT NULL, tags ARRAY<STRING> NOT NULL",
        {"id": 7, "name": "Ü\u20ac", "amount": 12.5, "tags": ["a", ""]},
        '{"id": 7, "name": {"string": "Ü\u20ac"}, "amount": 12.5, "tags": ["a", ""]}',
    ),
    Case(
        "AVRO",
        _AVRO,
        "id BIGINT NOT NULL, name STRING, amount DOUBLE NOT NULL, tags ARRAY<STRING> NOT NULL",
        {"id": -1, "name": None, "amount": 0.0, "tags": ["a" * 300]},
        '{"id": -1, "name": null, "amount": 0.0, "tags": ["' + "a" * 300 + '"]}',
    ),
    Case(
        "JSON",
        _JSON,
        "id BIGINT, name STRING, amount DOUBLE",
        {"id": 7, "name": "Ü\u20ac", "amount": 12.5},
        '{"id": 7, "name": "Ü\u20ac", "amount": 12.5}',
    ),
    Case(
        "PROTOBUF",
        _PROTO,
        "id BIGINT, name STRING, amount DOUBLE",
        {"id": 7, "name": "Ü\u20ac", "amount": 12.5},
        type="Order",
    ),
    Case("PROTOBUF", _PROTO, "stripes MAP<STRING, BIGINT>", {"stripes": [["a", 1]]}, type="Zebra"),
    Case("PROTOBUF", _PROTO, "id BIGINT", {"id": 1}, type="Zebra.Young"),
    Case(
        "PROTOBUF",
        _PROTO,
        "id BIGINT, young STRUCT<id: BIGINT>",
        {"id": 1, "young": {"id": 2}},
        type="Zebra.Adult",
    ),
    Case("PROTOBUF", _PROTO, "id BIGINT", {"id": 9}, type="order"),
    Case("PROTOBUF", _MANY, "id BIGINT", {"id": 3}, type="M99"),
]

"""Random ``.proto`` files, and columns for their fields."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_LONG, _INT, _TEXT, _UINT64 = LongType(), IntegerType(), StringType(), DecimalType(20, 0)
_MOMENT = StructType([StructField("seconds", _LONG), StructField("nanos", _INT)])

_INT32, _INT64 = [_INT, _INT, _LONG, ShortType(), ByteType()], [_LONG, _LONG, _INT]
_UINTS = [_UINT64, _UINT64, _LONG]

SCALARS: dict[str, list[DataType]] = {
    "int32": _INT32,
    "sint32": _INT32,
    "sfixed32": _INT32,
    "uint32": _INT64,
    "fixed32": _INT64,
    "int64": _INT64,
    "sint64": _INT64,
    "sfixed64": _INT64,
    "uint64": _UINTS,
    "fixed64": _UINTS,
    "bool": [BooleanType()],
    "float": [FloatType()],
    "double": [DoubleType()],
    "string": [_TEXT],
    "bytes": [BinaryType()],
}
"""The scalar types and what columns of them may be."""

_KNOWN: dict[str, list[DataType]] = {
    "google.protobuf.Timestamp": [TimestampType(), _MOMENT],
    "google.protobuf.Duration": [DayTimeIntervalType(), _MOMENT],
    "google.protobuf.Int32Value": [StructType([StructField("value", _INT)])],
    "google.protobuf.StringValue": [StructType([StructField("value", _TEXT)])],
}
_KEYS = [name for name in SCALARS if name not in ("float", "double", "bytes")]
_DEFAULTS = {
    "int32": "-7",
    "string": '"d\u00e9"',
    "bool": "true",
    "double": "1.5",
    "bytes": '"\\001x"',
    "uint64": "18446744073709551615",
}
_IMPORTS = {"Timestamp": "timestamp", "Duration": "duration", "Value": "wrappers"}


@dataclass
class Proto:
    """A ``.proto`` file while it is made.

    Args:
        rng: Decides.
        syntax: ``proto2`` or ``proto3``.
        enums: The names of its enums.
        lines: Its text so far.
    """

    rng: Random
    syntax: str
    enums: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The whole text."""
        body = "\n".join(self.lines)
        imports = (
            f'import "google/protobuf/{file}.proto";'
            for name, file in _IMPORTS.items()
            if re.search(f"protobuf\\.\\w*{name}", body)
        )
        return "\n".join([f'syntax = "{self.syntax}";', "package t;", *imports, body])

    def enum(self, *, with_zero: bool) -> str:
        """Defines an enum; returns its name. One that begins with 0 is what maps and proto3 demand."""
        name = f"E{len(self.enums)}"
        self.enums.append(name)
        numbers = self.rng.sample([1, 2, 5, -3, 127, 128, 300, 2**31 - 1, -(2**31)], 3)
        values = [0, *numbers] if with_zero or self.rng.random() < 0.8 else numbers
        body = " ".join(f"{name}_V{at} = {number};" for at, number in enumerate(values))
        self.lines.append(f"enum {name} {{ {body} }}")
        return name

    def message(self, name: str, depth: int) -> StructType:
        """Defines a message; returns the columns that its fields may be."""
        rng = self.rng
        numbers = iter(
            rng.sample([*range(1, 16), 16, 17, 100, 2047, 2048, 18999, 20000, 2**29 - 1], 14)
        )
        lines, columns = [], []
        for at in range(rng.randint(1, 8)):
            line, kind = self._field(f"f{at}", next(numbers), name, depth)
            lines.append(line)
            columns.append(StructField(f"f{at}", kind, rng.random() < 0.9))
        if rng.random() < 0.3:
            parts = [(f"o{at}", *self._one(f"{name}_o{at}", 0)) for at in range(2)]
            lines.append(
                "oneof choice { "
                + " ".join(f"{kind} {each} = {next(numbers)};" for each, kind, _ in parts)
                + " }"
            )
            columns += [StructField(each, kind) for each, _, kind in parts]
        if self.syntax == "proto2" and rng.random() < 0.15:
            lines.append(f"optional group Grp = {next(numbers)} {{ optional int32 g = 1; }}")
        self.lines.append(f"message {name} {{ {' '.join(lines)} }}")
        return StructType(columns)

    def _field(self, name: str, number: int, owner: str, depth: int) -> tuple[str, DataType]:
        rng, shape = self.rng, self.rng.random()
        if shape < 0.12:
            key = rng.choice(_KEYS)
            kind, column = self._one(f"{owner}_{name}", depth - 1, with_zero=True)
            return f"map<{key}, {kind}> {name} = {number};", MapType(
                rng.choice(SCALARS[key]), column
            )
        kind, column = self._one(f"{owner}_{name}", depth)
        if shape < 0.35:
            packed = rng.choice(["", "", " [packed = true]", " [packed = false]"])
            if kind in ("string", "bytes") or (kind not in SCALARS and not kind.startswith("E")):
                packed = ""
            return f"repeated {kind} {name} = {number}{packed};", ArrayType(column)
        if self.syntax == "proto3":
            return f"{'optional ' if shape < 0.6 else ''}{kind} {name} = {number};", column
        default = (
            f" [default = {_DEFAULTS[kind]}]" if kind in _DEFAULTS and rng.random() < 0.4 else ""
        )
        return (
            f"{'required' if shape > 0.93 else 'optional'} {kind} {name} = {number}{default};",
            column,
        )

    def _one(self, name: str, depth: int, *, with_zero: bool = False) -> tuple[str, DataType]:
        """The type of one value."""
        rng, shape = self.rng, self.rng.random()
        if shape < 0.1:
            with_zero |= self.syntax == "proto3"
            return self.enum(with_zero=with_zero), rng.choice([_TEXT, _INT, _LONG])
        if shape < 0.2:
            known = rng.choice([*_KNOWN])
            return known, rng.choice(_KNOWN[known])
        if shape < 0.35 and depth > 0:
            name = f"M_{name}"
            return name, chosen(rng, self.message(name, depth - 1))
        kind = rng.choice([*SCALARS])
        return kind, rng.choice(SCALARS[kind])


def chosen(rng: Random, columns: StructType) -> StructType:
    """Some of the columns, in another order."""
    return StructType(rng.sample(columns.fields, rng.randint(1, len(columns.fields))))

"""Another writer of Avro, which encodes the same data in other ways that the specification allows: blocks with sizes, long numbers."""

from __future__ import annotations

import struct
from decimal import Context
from random import Random
from typing import Any

_EXACT = Context(prec=80)


class Writer:
    """Writes data.

    Args:
        rng: Decides how arrays and maps are cut into blocks, and whether a block tells its size.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def write(self, schema: Any, value: Any) -> bytes:
        """A value; named types stand where they are used."""
        if isinstance(schema, list):
            at = next(at for at, branch in enumerate(schema) if _fits(branch, value))
            return long(at) + self.write(schema[at], value)
        kind = schema["type"] if isinstance(schema, dict) else schema
        match kind:
            case "record":
                return b"".join(self.write(f["type"], value[f["name"]]) for f in schema["fields"])
            case "array":
                return self._blocks([self.write(schema["items"], item) for item in value])
            case "map":
                entries = value.items()
                return self._blocks(
                    [sized(name.encode()) + self.write(schema["values"], v) for name, v in entries]
                )
            case "enum":
                return long(schema["symbols"].index(value))
            case "fixed":
                return bytes(value)
        return _simple(schema, kind, value)

    def _blocks(self, items: list[bytes]) -> bytes:
        written, at = b"", 0
        while at < len(items):
            some = items[at : at + self._rng.randint(1, len(items))]
            data = b"".join(some)
            head = (
                long(-len(some)) + long(len(data)) if self._rng.random() < 0.5 else long(len(some))
            )
            written, at = written + head + data, at + len(some)
        return written + b"\0"


def _simple(schema: Any, kind: str, value: Any) -> bytes:
    if kind == "null":
        return b""
    if kind == "boolean":
        return bytes([value])
    if kind in ("int", "long"):
        return long(value)
    if kind in ("float", "double"):
        return struct.pack("<" + kind[0], value)
    if isinstance(value, str):
        return sized(value.encode())
    if isinstance(schema, dict) and schema.get("logicalType") == "decimal":
        unscaled = int(value.scaleb(schema["scale"], _EXACT))
        return sized(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True))
    return sized(value)


def _fits(branch: Any, value: Any) -> bool:
    """Whether a value is one of a branch, of unions as the kinds here have them."""
    if branch == "null" or value is None:
        return branch == "null" and value is None
    return branch != "int" or not isinstance(value, int) or -(2**31) <= value < 2**31


def sized(data: bytes) -> bytes:
    """Bytes behind their length."""
    return long(len(data)) + data


def long(number: int) -> bytes:
    """A number of variable length in zigzag code."""
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])

"""Whole numbers, many at once and one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Numbers: TypeAlias = "npt.NDArray[Any]"


def offsets_of(sizes: Numbers) -> npt.NDArray[np.int64]:
    """Where each of some parts begins when they stand side by side, and where the last one ends."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def zigzag(values: Numbers) -> npt.NDArray[np.uint64]:
    """Signed numbers as unsigned ones, of which those near zero are small: 0, -1, 1, -2, ..."""
    wide = values.astype(np.int64, copy=False)
    return ((wide << 1) ^ (wide >> 63)).view(np.uint64)


def unzigzag(codes: Numbers) -> Numbers:
    """The signed numbers, of as many bits as the unsigned ones have."""
    one = codes.dtype.type(1)
    signed = f"i{codes.dtype.itemsize}"
    return np.asarray((codes >> one).view(signed) ^ -(codes & one).view(signed))


def varint(value: int) -> bytes:
    """An unsigned number in as few bytes as will do: seven bits in each, the lowest ones first."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])

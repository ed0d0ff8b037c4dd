"""What encoders of text formats share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from pyspark_upsert_kafka.core.errors import EncodeError

Written = TypeVar("Written")


def naming_column(path: str, write: Callable[[pa.Array], Written]) -> Callable[[pa.Array], Written]:
    """The writer of a column, whose ValueErrors become EncodeErrors that name the column."""

    def named(array: pa.Array) -> Written:
        try:
            return write(array)
        except ValueError as why:
            raise EncodeError(path, str(why)) from None

    return named

"""Fields on the row path: NULL, NOT NULL, and errors that name the field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark_upsert_kafka.formats.decoding import UnreadableError


@dataclass(frozen=True)
class RowField:
    """A field of a message, or one inside it.

    Args:
        path: Where it stands, for people: ``order.lines[].price``.
        nullable: Whether it may be NULL.
        lenient: Whether a bad value is NULL, as ``ignore-parse-errors`` has it.
    """

    path: str
    nullable: bool
    lenient: bool = False

    def null(self, absent: str = "null or missing") -> None:
        """What it is without a value: NULL, or an UnreadableError under NOT NULL."""
        if not self.nullable:
            raise UnreadableError(f"field '{self.path}' is NOT NULL, but is {absent}")

    def reader(
        self, read: Callable[[Any], Any], shown: Callable[[Any], str], null: Any = None
    ) -> Callable[[Any], Any]:
        """Compiles its reader, which raises UnreadableError.

        Args:
            read: Reads a value; None = it is NULL after all, ValueError = it is bad.
            shown: A value as it stands in an error.
            null: What stands for NULL besides None.
        """

        def field(value: Any) -> Any:
            if value is None or value == null:
                return self.null()
            try:
                found = read(value)
            except UnreadableError:
                raise
            except ValueError as why:
                if self.lenient:
                    return self.null()
                raise UnreadableError(f"field '{self.path}': {why}, got {shown(value)}") from None
            return self.null() if found is None else found

        return field

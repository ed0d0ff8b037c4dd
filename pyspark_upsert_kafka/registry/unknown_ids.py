"""Which ids a registry does not know: it is not asked for each of the many messages that may name one."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from pyspark_upsert_kafka.formats.registry_format import UnknownSchemaError

_UNKNOWN_S = 30.0
"""For how long an id that the registry does not know is not asked for again, in seconds."""

_MOST_UNKNOWN = 100_000
"""So many of them are remembered: messages that do not belong there may begin with anything."""


class UnknownIds:
    """Remembers for a short time which ids a registry does not know: many messages may name each.

    Args:
        clock: Gives the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[Hashable, tuple[float, str]] = OrderedDict()

    def raise_if_remembered(self, schema_id: Hashable) -> None:
        """Raises an UnknownSchemaError if the registry was asked for the id a moment ago, and did not know it."""
        asked_at, said = self._known.get(schema_id, (float("-inf"), ""))
        if self._clock() - asked_at < _UNKNOWN_S:
            raise UnknownSchemaError(said)

    def add(self, schema_id: Hashable, said: str) -> None:
        """Remembers an id that the registry does not know, and what is said of that."""
        self._known[schema_id] = self._clock(), said
        self._known.move_to_end(schema_id)
        if len(self._known) > _MOST_UNKNOWN:
            self._known.popitem(last=False)

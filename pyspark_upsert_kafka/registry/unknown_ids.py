"""Which ids a registry does not know: it is not asked for each of the many messages that may name one, nor for each of many ids.

Messages that do not belong in a topic may begin with anything, and each with something else.
"""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark_upsert_kafka.formats.registry_format import UnknownSchemaError

_UNKNOWN_S = 30.0
"""For how long an id that the registry does not know is not asked for again, in seconds."""

_AT_ONCE = 1_000
"""For so many ids a registry may be asked in vain without a pause."""

_EACH_S = 10.0
"""And then for so many a second."""

_MOST_KEPT = 10_000
"""So many are remembered: more than can be asked for in `_UNKNOWN_S`."""


@dataclass
class _OfRegistry:
    """What one registry does not know.

    Args:
        at_s: When it was last asked in vain, in seconds.
        free: For how many ids it could have been asked in vain then.
        said: What was said of each of them, and when.
    """

    at_s: float = 0.0
    free: float = _AT_ONCE
    said: OrderedDict[Hashable, tuple[float, str]] = field(default_factory=OrderedDict)

    def free_at(self, now_s: float) -> float:
        """For how many ids it may be asked in vain."""
        return min(_AT_ONCE, self.free + _EACH_S * (now_s - self.at_s))

    def add(self, schema_id: Hashable, said: str, now_s: float) -> None:
        """Remembers one."""
        self.free, self.at_s = self.free_at(now_s) - 1, now_s
        self.said[schema_id] = now_s, said
        self.said.move_to_end(schema_id)
        if len(self.said) > _MOST_KEPT:
            self.said.popitem(last=False)


class UnknownIds:
    """Remembers for a short time which ids registries do not know, and lets them be asked for new ones at a limited pace.

    Args:
        clock: Gives the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._registries: defaultdict[Hashable, _OfRegistry] = defaultdict(_OfRegistry)

    @contextmanager
    def asking(self, registry: Hashable, schema_id: Hashable, named: str) -> Iterator[None]:
        """Around the request for an id that is not known yet.

        Args:
            registry: The registry.
            schema_id: The id.
            named: What the id is called, for the error.

        Raises:
            UnknownSchemaError: The registry does not know it; or did not know it a moment ago, or so many others that this one is
                taken for another of them, and is not asked.
        """
        of_registry, now_s = self._registries[registry], self._clock()
        asked_at, said = of_registry.said.get(schema_id, (float("-inf"), ""))
        if now_s - asked_at < _UNKNOWN_S:
            raise UnknownSchemaError(said)
        if of_registry.free_at(now_s) < 1:
            raise UnknownSchemaError(
                f"{named} was not looked up: the registry did not know the last {_AT_ONCE:,} that were, so that it is asked for "
                f"only {_EACH_S:.0f} a second now"
            )
        try:
            yield
        except UnknownSchemaError as error:
            of_registry.add(schema_id, str(error), self._clock())
            raise

"""Which ids a registry does not know: it is not asked for each of the many messages that may name one, nor at any pace.

Messages that do not belong in a topic may begin with anything, and each with something else. That an id is unknown is for the
registry to say: where it is not asked at once, whoever wants to know waits, since the message may be a good one.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark_upsert_kafka.core.clock import SYSTEM_CLOCK, Clock
from pyspark_upsert_kafka.formats.registry_format import UnknownSchemaError

logger = logging.getLogger("pyspark_upsert_kafka")

_UNKNOWN_S = 30.0
"""For how long an id that the registry does not know is not asked for again, in seconds."""

_AT_ONCE = 1_000
"""For so many ids a registry may be asked in vain without a pause."""

_EACH_S = 25.0
"""And then for so many a second."""

_MOST_KEPT = 10_000
"""So many are remembered: more than can be asked for in `_UNKNOWN_S`."""

_SHORTEST_S = 0.001
"""No pause is shorter: a sum of very short ones may not rise."""

_TOLD_EACH_S = 30.0
"""So often it is said that a task waits, in seconds."""


@dataclass
class _OfRegistry:
    """What one registry does not know.

    Args:
        at_s: When it was last asked in vain, in seconds.
        free: For how many ids it could have been asked in vain then.
        said: What was said of each of them, and when.
        told_at_s: When it was last told that somebody waits.
    """

    at_s: float = 0.0
    free: float = field(default_factory=lambda: _AT_ONCE)
    said: OrderedDict[Hashable, tuple[float, str]] = field(default_factory=OrderedDict)
    told_at_s: float = float("-inf")

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
        clock: Tells the time, and waits.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._registries: defaultdict[Hashable, _OfRegistry] = defaultdict(_OfRegistry)

    @contextmanager
    def asking(self, registry: Hashable, schema_id: Hashable, named: str) -> Iterator[None]:
        """Around the request for an id that is not known yet. Waits until it may be sent.

        Args:
            registry: The registry.
            schema_id: The id.
            named: What the id is called, for the log.

        Raises:
            UnknownSchemaError: The registry does not know it, or did not know it a moment ago.
        """
        if (said := self.said(registry, schema_id)) is not None:
            raise UnknownSchemaError(said)
        self._wait(self._registries[registry], named)
        try:
            yield
        except UnknownSchemaError as error:
            self.add(registry, schema_id, str(error))
            raise

    def said(self, registry: Hashable, schema_id: Hashable) -> str | None:
        """What a registry that does not know an id said a moment ago; None = it was not asked, or knows it."""
        at_s, said = self._registries[registry].said.get(schema_id, (float("-inf"), None))
        return said if self._clock.monotonic() - at_s < _UNKNOWN_S else None

    def add(self, registry: Hashable, schema_id: Hashable, said: str) -> None:
        """Remembers what a registry says of an id that it does not know."""
        self._registries[registry].add(schema_id, said, self._clock.monotonic())

    def _wait(self, of_registry: _OfRegistry, named: str) -> None:
        while (free := of_registry.free_at(now_s := self._clock.monotonic())) < 1:
            if now_s - of_registry.told_at_s >= _TOLD_EACH_S:
                of_registry.told_at_s = now_s
                logger.warning(
                    "Messages name very many schemas that the registry does not know, so that it is asked for only %.0f a second "
                    "more, and this task waits; %s is next. Until the registry has said that an id is unknown, its message may be "
                    "a good one. Find out who writes the others: they are no messages of this format.",
                    _EACH_S, named,
                )  # fmt: skip
            self._clock.sleep(max(_SHORTEST_S, (1 - free) / _EACH_S))

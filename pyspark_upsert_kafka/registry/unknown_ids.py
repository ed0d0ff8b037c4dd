"""Which ids a registry does not know: it is not asked for each of the many messages that may name one, nor at any pace.

Messages that do not belong in a topic may begin with anything, and each with something else. That an id is unknown is for the
registry to say: where it is not asked at once, whoever wants to know waits, since the message may be a good one. It may also have
several nodes, of which one that lags behind the others does not know an id that was given a moment ago.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

from pyspark_upsert_kafka.core.clock import SYSTEM_CLOCK, Clock
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.formats.registry_format import UnknownSchemaError

logger = logging.getLogger("pyspark_upsert_kafka")

_UNKNOWN_S = 30.0
"""For how long an id that the registry does not know is not asked for again, in seconds."""

_AT_ONCE = 1_000
"""For so many ids a registry may be asked in vain without a pause."""

_EACH_S = 25.0
"""And then for so many a second."""

_AGAIN_AFTER_S = 2.0
"""After this pause it is asked for a new id once more, in seconds: nodes mostly lag by less than one."""

_AGAIN_AT_ONCE = 10
"""For so many ids it is asked once more. When the pause for the first is over, those that are as old are known too."""

_AGAIN_EACH_S = 1 / 60
"""And then for so many a second."""

_MOST_KEPT = 10_000
"""So many are remembered: more than can be asked for in `_UNKNOWN_S`."""

_SHORTEST_S = 0.001
"""No pause is shorter: a sum of very short ones may not rise."""

_TOLD_EACH_S = 30.0
"""So often it is said that a task waits, in seconds."""

T = TypeVar("T")


@dataclass
class _Allowance:
    """So much at once, and then so much a second.

    Args:
        most: How much at once.
        each_s: How much a second.
        at_s: When some of it was last taken, in seconds.
        free: How much was left then.
    """

    most: float
    each_s: float
    at_s: float = 0.0
    free: float = field(init=False)

    def __post_init__(self) -> None:
        self.free = self.most

    def left(self, now_s: float) -> float:
        """How much may be taken."""
        return min(self.most, self.free + self.each_s * (now_s - self.at_s))

    def take(self, now_s: float) -> None:
        """Takes one."""
        self.free, self.at_s = self.left(now_s) - 1, now_s


@dataclass
class _OfRegistry:
    """What one registry does not know.

    Args:
        in_vain: For how many ids it may be asked in vain.
        again: For how many ids of each type it may be asked once more.
        said: What was said of each of them, and when.
        told_at_s: When it was last told that somebody waits.
    """

    in_vain: _Allowance = field(default_factory=lambda: _Allowance(_AT_ONCE, _EACH_S))
    again: defaultdict[type, _Allowance] = field(
        default_factory=lambda: defaultdict(lambda: _Allowance(_AGAIN_AT_ONCE, _AGAIN_EACH_S))
    )
    said: OrderedDict[Hashable, tuple[float, str]] = field(default_factory=OrderedDict)
    told_at_s: float = float("-inf")

    def add(self, schema_id: Hashable, said: str, now_s: float) -> None:
        """Remembers one."""
        self.in_vain.take(now_s)
        self.said[schema_id] = now_s, said
        self.said.move_to_end(schema_id)
        if len(self.said) > _MOST_KEPT:
            self.said.popitem(last=False)


def _always() -> bool:
    return True


class UnknownIds:
    """Remembers for a short time which ids registries do not know, and lets them be asked for new ones at a limited pace.

    Args:
        clock: Tells the time, and waits.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self._registries: defaultdict[Hashable, _OfRegistry] = defaultdict(_OfRegistry)

    def asked(
        self,
        registry: Hashable,
        schema_id: Hashable,
        named: str,
        ask: Callable[[int], T],
        may_be_new: Callable[[], bool] = _always,
    ) -> T:
        """What a registry answers for an id that is not known yet. Waits until it may be asked.

        Of an id that it has never been asked for it may be a node that lags behind which does not know it: it is asked once more,
        after a pause. Ids of a type have an allowance of their own for that. If the second answer is none, the first one counts.

        Args:
            registry: The registry.
            schema_id: The id.
            named: What the id is called, for the log.
            ask: Asks for it, the first time or the second (0 or 1).
            may_be_new: Whether the id may have been given a moment ago.

        Raises:
            UnknownSchemaError: The registry does not know it, or did not know it a moment ago.
        """
        if (said := self.said(registry, schema_id)) is not None:
            raise UnknownSchemaError(said)
        of_registry = self._registries[registry]
        self._wait(of_registry, named)
        try:
            return ask(0)
        except UnknownSchemaError as error:
            unknown = error
        if self._may_ask_again(of_registry, schema_id) and may_be_new():
            of_registry.again[type(schema_id)].take(self.clock.monotonic())
            self.clock.sleep(_AGAIN_AFTER_S)
            try:
                return ask(1)
            except UnknownSchemaError as error:
                unknown = error
            except BrokerError:
                pass  # one node has said that the id is unknown, and no other knows better
        self.add(registry, schema_id, str(unknown))
        raise unknown

    def _may_ask_again(self, of_registry: _OfRegistry, schema_id: Hashable) -> bool:
        """Whether the id is one that it was never asked for, and the allowance for such ids is not used up."""
        left = of_registry.again[type(schema_id)].left(self.clock.monotonic())
        return schema_id not in of_registry.said and left >= 1

    def said(self, registry: Hashable, schema_id: Hashable) -> str | None:
        """What a registry that does not know an id said a moment ago; None = it was not asked, or knows it."""
        at_s, said = self._registries[registry].said.get(schema_id, (float("-inf"), None))
        return said if self.clock.monotonic() - at_s < _UNKNOWN_S else None

    def add(self, registry: Hashable, schema_id: Hashable, said: str) -> None:
        """Remembers what a registry says of an id that it does not know."""
        self._registries[registry].add(schema_id, said, self.clock.monotonic())

    def _wait(self, of_registry: _OfRegistry, named: str) -> None:
        while (free := of_registry.in_vain.left(now_s := self.clock.monotonic())) < 1:
            if now_s - of_registry.told_at_s >= _TOLD_EACH_S:
                of_registry.told_at_s = now_s
                logger.warning(
                    "Messages name very many schemas that the registry does not know, so that it is asked for only %.0f a second "
                    "more, and this task waits; %s is next. Until the registry has said that an id is unknown, its message may be "
                    "a good one. Find out who writes the others: they are no messages of this format.",
                    _EACH_S, named,
                )  # fmt: skip
            self.clock.sleep(max(_SHORTEST_S, (1 - free) / _EACH_S))

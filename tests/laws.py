"""How many examples a law has: a few in `make test`, all with FULL_LAWS=1 (`make test-all`, `make laws`).

A few examples that are made find a guard only by luck. So each guard in the code under a law has an example that is pinned
beside it: by `@example`, or as a row of a table that goes through the same law.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, example, settings

Test = TypeVar("Test", bound=Callable[..., None])
Value = TypeVar("Value")

FULL = bool(os.environ.get("FULL_LAWS"))
RANDOM = bool(os.environ.get("RANDOM_EXAMPLES"))

FEW_EXAMPLES = 50
FEW_RUNS = 20

PROFILE = "laws"

settings.register_profile(
    PROFILE,
    max_examples=100 if FULL else FEW_EXAMPLES,
    # An example may take its time on a busy machine.
    deadline=None,
    # Each run has the same examples; `make fuzz` and `make laws` look for others.
    derandomize=not RANDOM,
    # Those that measure time would fail by chance, and the others say nothing of the code under a law.
    suppress_health_check=list(HealthCheck),
)


def pinned(name: str, values: Iterable[Any], **others: Any) -> Callable[[Test], Test]:
    """Pins an example for each of these values.

    Args:
        name: The argument.
        values: What it is.
        others: The other arguments.
    """

    def pin(test: Test) -> Test:
        for value in values:
            test = example(**{name: value}, **others)(test)
        return test

    return pin


def each_of(name: str, values: Iterable[Any], **others: Any) -> Callable[[Test], Test]:
    """Pins an example of a list with each of these values, as `pinned` does."""
    return pinned(name, ([value] for value in values), **others)


def share(values: Sequence[Value], at: int, of: int) -> Sequence[Value]:
    """All values with FULL_LAWS=1; without, every ``of``-th, beginning with another one for each ``at``.

    Where the same odd values go through a law for many types or options, and each pair need not.
    """
    return values if FULL else values[at % of :: of]


def law(examples: int, *, few: int = FEW_EXAMPLES) -> settings:
    """The settings of a law.

    Args:
        examples: How many examples it has with FULL_LAWS=1.
        few: How many it has at most without; fewer where it is tried for many formats or options.
    """
    most = examples if FULL else min(examples, few)
    return settings(settings.get_profile(PROFILE), max_examples=most)


def runs(count: int, *, steps: int) -> settings:
    """The settings of a state machine.

    Args:
        count: How many runs it has with FULL_LAWS=1.
        steps: The most steps of a run.
    """
    return settings(
        settings.get_profile(PROFILE),
        max_examples=count if FULL else FEW_RUNS,
        stateful_step_count=steps,
    )

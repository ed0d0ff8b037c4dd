"""How one run of a query calls its sinks, and how the next run may differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Literal

Kind = Literal["options", "columns", "nothing", "prefix", "alone"]
"""What tells the second sink from the first: but for ``prefix`` they have one; ``alone`` = there is none."""

Fault = Literal["", "row", "end", "worker"]
"""What goes wrong: a row that cannot be encoded, an error after all calls, a worker that is killed."""

FAULTS: dict[Fault, str] = {
    "row": "rows that cannot be encoded",
    "end": "errors after all calls",
    "worker": "workers to be killed",
}
"""What is said of them."""

KINDS: tuple[Kind, ...] = ("options", "columns", "nothing", "prefix", "alone")


@dataclass(frozen=True)
class Variant:
    """One way to call the sinks.

    Args:
        kind: What tells the second sink from the first.
        ddl: Whether a DDL declares the table, with keys in their widest types.
        order: Which sinks are called, and in which order.
        caller: From which thread.
        id_type: Type of the key column ``id``.
        key: The columns of ``primary-key``.
        tasks: ``sink.parallelism``.
        obeys: Whether the second sink has got a prefix of its own, as it is told to when nothing else tells it.
    """

    kind: Kind
    ddl: bool
    order: str = "AB"
    caller: Literal["here", "a thread", "threads"] = "here"
    id_type: str = "INT"
    key: str = "id,g"
    tasks: int = 3
    obeys: bool = False


def first_variant(random: Random) -> Variant:
    """How a query is written at first."""
    kind = random.choice(KINDS)
    return Variant(
        kind,
        ddl=random.random() < 0.5,
        order="A" if kind == "alone" else "AB",
        caller="here" if random.random() < 0.8 else random.choice(("a thread", "threads")),
        id_type=random.choice(("INT", "BIGINT")),
        tasks=random.choice((2, 3)),
    )


def changed(variant: Variant, random: Random) -> Variant:
    """The same with one thing changed that could distribute or name rows otherwise."""
    orders = {"AB": ["BA", "B", "BA"], "A": ["A"]}[variant.order]
    if variant.kind == "nothing":  # without the first, the second is the first
        orders = ["BA"]
    changes = (
        {"order": random.choice(orders)},
        {"caller": random.choice(("a thread", "threads"))},
        {"id_type": "BIGINT" if variant.id_type == "INT" else "INT"},
        {"key": "g,id"},
        {"tasks": variant.tasks + 1},
    )
    return replace(variant, **random.choice(changes))  # type: ignore[arg-type]


def fault(random: Random) -> Fault:
    """What goes wrong in a run."""
    faults: tuple[Fault, ...] = ("row", "row", "end", "worker", "")
    return random.choice(faults)

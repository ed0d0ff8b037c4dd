"""Mutations that change nothing that a program could notice, each with the reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equivalent:
    """A mutation that no test can notice.

    Args:
        module: The file, inside the package.
        before: The line as it is.
        after: The line with the mutation, as the table of survivors shows it.
        reason: Why that is the same.
    """

    module: str
    before: str
    after: str
    reason: str


EQUIVALENT: tuple[Equivalent, ...] = ()

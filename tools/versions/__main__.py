"""Runs cells of docs/versions.md: ``make test-versions``. Names of tables, rows and columns choose some of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path

from pyspark_upsert_kafka.core.errors import BrokerError
from tools.versions.environments import Environment, NoEnvironmentError
from tools.versions.page import PAGE, page, shown
from tools.versions.plan import Trial, chosen
from tools.versions.results import Place, Result, load, save
from tools.versions.wheels import Wheels


class Environments:
    """Makes an environment when a cell first needs it, and deletes it after the last that does.

    Args:
        needed: The environment of each cell.
    """

    def __init__(self, needed: Iterable[Environment]) -> None:
        self._uses = Counter(needed)
        self._pythons: dict[Environment, Path] = {}

    @contextmanager
    def lent(self, environment: Environment) -> Iterator[Path]:
        """The Python of an environment, for one cell.

        Raises:
            NoEnvironmentError: It cannot be made.
        """
        try:
            if environment not in self._pythons:
                self._pythons[environment] = environment.make()
            yield self._pythons[environment]
        finally:
            self._uses[environment] -= 1
            if not self._uses[environment]:
                environment.remove()


def run(
    cells: Sequence[tuple[Place, Trial | Wheels]], day: str
) -> Iterator[tuple[Place, Trial | Wheels, Result]]:
    """Runs cells, one after another; those that follow each other on one broker share it."""
    environments = Environments(cell.environment for _, cell in cells if isinstance(cell, Trial))
    for broker, group in groupby(cells, lambda each: getattr(each[1], "broker", None)):
        if broker is None:
            for place, cell in group:
                assert isinstance(cell, Wheels)
                yield place, cell, cell.check(day)
            continue
        same = [(place, cell) for place, cell in group if isinstance(cell, Trial)]
        try:
            with broker.running() as servers:
                for place, cell in same:
                    yield place, cell, tested(cell, environments, servers, day)
        except BrokerError as error:
            for place, cell in same:
                yield place, cell, Result(day, problem=f"the broker did not start: {error}")


def tested(cell: Trial, environments: Environments, servers: str, day: str) -> Result:
    """What the tests of a cell gave."""
    try:
        with environments.lent(cell.environment) as python:
            return cell.tests.run(python, servers, day)
    except NoEnvironmentError as problem:
        return Result(day, problem=str(problem))


def main(wanted: Sequence[str]) -> int:
    """Runs the cells that are named, or all; 1 = one of them is not good, 2 = nothing has such a name."""
    cells = list(chosen(wanted))
    if not cells:
        print("No table, row or column of docs/versions.md has one of these names:", *wanted)
        return 2
    good = True
    for place, cell, result in run(cells, f"{datetime.now(timezone.utc):%Y-%m-%d}"):
        good = good and result.is_good
        # After each cell: all of them take longer than anybody waits.
        results = {**load(), place: result}
        save(results)
        PAGE.write_text(page(results), encoding="utf-8")
        print(*place, shown(cell, result), sep=": ", flush=True)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

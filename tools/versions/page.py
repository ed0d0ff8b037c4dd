"""Makes docs/versions.md from the results of the cells; ``python -m tools.versions.page`` after a change of its texts."""

from __future__ import annotations

from collections.abc import Iterator

from tools.versions.environments import ROOT
from tools.versions.plan import TABLES, Cell, Impossible, Table
from tools.versions.results import Result, Results, load
from tools.versions.wheels import Wheels

PAGE = ROOT / "docs" / "versions.md"

_TEXTS = {
    "": """\
# Versions

<!-- Made by `make test-versions`. -->

This page says which versions work together: [brokers](#brokers), [Python and PySpark](#python-and-pyspark),
[managed Spark](#managed-spark), the [oldest and newest packages](#other-packages), and the [platforms](#wheels) on which `pip` needs no compiler. Each cell is a run:
what it gave, and on which day. A cell that says `not run` makes no statement.
""",
    "brokers": """\
## Brokers

Kafka 2.1 and newer work, with each client. The first three columns read and write with a client alone: headers, transactions, past
times, groups, `read_table` and `show`. In the last column Spark reads and writes with the default client: batch, streaming, headers,
update mode, whole rows and exactly once. Kafka 2.1 and 2.8 ran with ZooKeeper, the others with KRaft.

Kafka before 2.8 gives topics no ids: there, a topic that was deleted and created again
[is not always noticed](streaming.md#when-data-is-gone). kafka-python-ng has [no transactions](kafka-python.md), on any broker.
""",
    "python": """\
## Python and PySpark

Python 3.10 and newer, PySpark 4.0 and newer, on the broker that `LocalKafka` starts. A test is skipped if PySpark does not support what
it needs: [limits per micro-batch](micro-batches.md) and [sources with names](operating.md#sources-that-come-and-go) before 4.2,
[whole rows with state](whole-rows.md) before 4.1. [`scan.headers`](filters.md#only-messages-with-certain-headers) works with each.
The workflow of CI runs all tests with Python 3.14.
""",
    "managed": """\
## Managed Spark

The Python and the PySpark that services document ([the page on them](managed-spark.md) has the sources), installed with `pip` on a Linux
machine, with the newest of all other packages where a service does not publish its own: what PySpark of that version does, and not the
service's own Spark, which may differ. The second column has the oldest PyArrow that this package takes.
Each run reads, writes and streams, with update mode, whole rows and exactly once. Under the table are the versions that were installed.
""",
    "packages": """\
## Other packages

The oldest versions that the project allows of the packages that it names, and the newest of all, with the tests of the table above and
with the unit tests of the package, which need no broker. Under the table are the versions that were installed. Spark needs pandas for
`normalize_changelog`. With pandas 3, PySpark 4.3 warns that it "does not yet fully support" it, so the extra `changelog` installs
pandas 2.
""",
    "wheels": """\
## Wheels

How many packages are installed from wheels: the dependencies of the project and of its extras, and theirs. If the newest version of a
package has no wheel for a platform or an old Python, the newest one that has counts. Two packages are not counted: PySpark, which
has nothing to compile, and `gssapi` of the extra `kerberos`, which is always compiled on Linux.
""",
}


def page(results: Results) -> str:
    """The text of docs/versions.md."""
    parts = [_TEXTS[""]]
    for table in TABLES:
        parts += [_TEXTS[table.name], "\n".join(_lines(table, results)) + "\n"]
        if table.name in ("managed", "packages"):
            parts.append("\n".join(_versions_of_rows(table, results)) + "\n")
    return "\n".join(parts)


def shown(cell: Cell, result: Result | None) -> str:
    """The text of a cell.

    Args:
        cell: What it runs.
        result: What that gave when it last ran; None = it never ran.
    """
    if isinstance(cell, Impossible):
        return cell.reason
    if result is None:
        return "not run"
    if result.problem:
        return f"{result.problem} ({result.day})"
    if result.failed:
        return f"**{len(result.failed)} failed**: {', '.join(result.failed)} ({result.day})"
    unit = "wheels" if isinstance(cell, Wheels) else "tests"
    skipped = f", {result.skipped} skipped" if result.skipped else ""
    return f"ok: {result.passed} {unit}{skipped} ({result.day})"


def _lines(table: Table, results: Results) -> Iterator[str]:
    columns = list(next(iter(table.cells.values())))
    headings = [_column_heading(table, column, results) for column in columns]
    yield f"| {' | '.join([table.corner, *headings])} |"
    yield f"|{'---|' * (len(columns) + 1)}"
    for row, cells in table.cells.items():
        texts = [shown(cell, results.get((table.name, row, name))) for name, cell in cells.items()]
        yield f"| {' | '.join([_row_heading(table, row, results), *texts])} |"


def _versions_of_rows(table: Table, results: Results) -> Iterator[str]:
    for row, cells in table.cells.items():
        found = [results.get((table.name, row, column)) for column in cells]
        versions = next((each.versions for each in found if each and each.versions), {})
        named = ", ".join(f"{name} {version}" for name, version in versions.items())
        yield f"- {row}: {named or 'not run'}"


def _column_heading(table: Table, column: str, results: Results) -> str:
    package = table.columns.get(column)
    found = [results.get((table.name, row, column)) for row in table.cells]
    version = _version(package or "", found)
    name = column.partition(" ")[0] if version else column
    return f"{name} {version}".strip()


def _row_heading(table: Table, row: str, results: Results) -> str:
    found = [results.get((table.name, row, column)) for column in table.cells[row]]
    return _version(table.rows, found) or row


def _version(package: str, results: list[Result | None]) -> str:
    """The version of a package that the last of these runs had."""
    seen = [
        (each.day, each.versions[package]) for each in results if each and package in each.versions
    ]
    return max(seen)[1] if seen else ""


if __name__ == "__main__":
    PAGE.write_text(page(load()), encoding="utf-8")

"""The tables of docs/scale.md, made from what was measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from scale.model import Model, Read, error_percent, fitted
from scale.samples import growth, names

NO_TIME = "-"
"""Where a time was measured beside other work, it is not shown."""

_PRICE = 0.05
"""Of a core for an hour, in dollars."""


def with_tables(page: str, measured: dict) -> str:
    """The page with the tables of all that was measured."""
    for part, table_of in TABLES.items():
        found = measured.get(part)
        lines = [*table_of(found), "", _where(found)] if found else ["Not measured yet."]
        begin, end = f"<!-- measured: {part} -->", "<!-- end -->"
        table = "\n".join([begin, *lines, end])
        page = re.sub(f"{begin}.*?{end}", lambda _, table=table: table, page, flags=re.DOTALL)
    return page


def _where(found: dict) -> str:
    beside = (
        "on a machine without other work"
        if found["quiet"]
        else ("beside other work, so without times; core-seconds are then somewhat higher")
    )
    if not found["quiet"] and "tables" in found:
        load = f" (a load average of {found['load']:.0f})" if "load" in found else ""
        beside = f"beside much other work{load}: without it, seconds are fewer"
    return f"Measured on {found['date']} with PySpark {found['pyspark']}, two cores and the broker on the same machine, {beside}."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def _model_of(found: dict) -> Model:
    return fitted([Read.of(each) for each in found["calibration"]])


def keys_table(found: dict) -> list[str]:
    """The model's numbers, and beside them what was measured."""
    model = _model_of(found)
    rows = []
    for each in found["checks"]:
        read = Read.of(each)
        said, size = model.read(read.size), read.size
        rows.append(
            [
                f"{size.messages / 1e6:g} million over {size.keys / 1e6:g} million keys, {size.tasks} tasks",
                _pair(said.seconds, read.seconds) if found["quiet"] else NO_TIME,
                _pair(said.core_s, read.core_s),
                _pair(said.worker_mb, read.worker_mb),
            ]
        )
    head = [
        "messages",
        "seconds: model, measured, error",
        "core-seconds",
        "MB of the largest worker",
    ]
    return [*_table(head, rows), "", *_formulas(model, quiet=found["quiet"])]


def _formulas(model: Model, *, quiet: bool) -> list[str]:
    seconds = f"seconds on two cores = {_line(model.seconds)}" if quiet else ""
    million = model.core_s.per_message * 1e6
    lines = [
        seconds,
        f"core-seconds = {_line(model.core_s)}",
        f"MB of a worker = {model.worker_mb:.0f} + {model.mb_per_key * 1e6:.0f} * million keys of a task",
        f"a million messages = {million:.1f} core-seconds = ${million / 3600 * _PRICE:.5f} at ${_PRICE} for a core and hour",
    ]
    return ["```text", *filter(None, lines), "```"]


def _line(line) -> str:
    return f"{line.fixed:.1f} + {line.per_message * 1e6:.2f} * million messages + {line.per_task:.3f} * tasks"


def _pair(said: float, measured: float) -> str:
    return f"{said:,.0f}, {measured:,.0f}, {error_percent(said, measured):+.0f} %"


def wide_table(found: dict) -> list[str]:
    """What each step took in each shape."""
    rows = [
        [
            shape,
            step,
            f"{each['seconds']:.1f}" if found["quiet"] else NO_TIME,
            f"{sum(kind['core_s'] for name, kind in each['most'].items() if name != 'broker'):.1f}",
            *(_of(each, kind, "memory_mb") for kind in ("worker", "planner", "JVM")),
            *(_of(each, "worker", what) for what in ("threads", "files", "connections")),
        ]
        for shape, steps in found["shapes"].items()
        for step, each in steps.items()
    ]
    head = ["", "step", "s", "core-s", "MB of a worker", "of a planning process", "of the JVM"]
    return _table([*head, "threads of a worker", "open files", "connections"], rows)


def _of(step: dict, kind: str, what: str) -> str:
    held = step["most"].get(kind)
    return f"{held[what]:,.0f}" if held else ""


def executors_table(found: dict) -> list[str]:
    """What each job took on the cluster."""
    rows = [
        [
            job,
            f"{each['seconds']:.1f}" if found["quiet"] else NO_TIME,
            ", ".join(str(count) for count in sorted(each["tasks"].values())),
            _of(each, "worker", "memory_mb"),
            _of(each, "executor", "memory_mb"),
            _of(each, "worker", "connections"),
        ]
        for job, each in found["jobs"].items()
    ]
    head = ["job", "s", "tasks of each executor", "MB of a worker", "MB of an executor's JVM"]
    return _table([*head, "connections of a worker"], rows)


def growth_table(found: dict) -> list[str]:
    """The peaks of each quantity in the quarters of the run."""
    samples = found["samples"]
    last = samples[-1]
    rows = [[name, *(f"{peak:,.0f}" for peak in growth(samples, name))] for name in names(samples)]
    done = f"{last['batches']:,.0f} micro-batches"
    if "triggers" in last:
        done = f"{last['triggers']:,.0f} triggers, {done}"
    head = [f"peak in each quarter of {done}", "first", "second", "third", "last"]
    return _table(head, rows)


def tables_table(found: dict) -> list[str]:
    """What the queries of many tables held, and how long their micro-batches took."""

    def seconds(each: dict, name: str) -> str:
        return f"{each[name]:,.1f}" if name in each else ""

    rows = [
        [
            shape,
            f"{held['JVM_mb']:,.0f}",
            f"{held['python_mb']:,.0f} in {held['python_processes']:.0f}",
            f"{held['JVM_threads']:,.0f}",
            seconds(each, "first_s"),
            seconds(each, "batch_s"),
            f"{each['core_s']:.2f}" if "core_s" in each else "",
            f"{each['idle_cores']:.2f}" if "idle_cores" in each else "",
        ]
        for shape, each in found["shapes"].items()
        for held in [each.get("held", each)]
    ]
    head = [
        "",
        "MB of the JVM",
        "MB of Python, in processes",
        "threads of the JVM",
        "s, first batch of all",
        "s, a batch of all",
    ]
    merged = "merged into Iceberg" if found["merges"] else "written to `noop`"
    note = f"Each batch has {found['changes']} changes of each table, {merged}."
    return [*_table([*head, "core-s for each table's batch", "cores, idle"], rows), "", note]


TABLES: dict[str, Callable[[dict], list[str]]] = {
    "keys": keys_table,
    "wide": wide_table,
    "executors": executors_table,
    "week": growth_table,
    "tables": tables_table,
    "tables-read": tables_table,
    "direct": growth_table,
}
"""The table of each part."""

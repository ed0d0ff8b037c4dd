"""Whole queries over a small topic and a large one: the fixed cost of a query, and the cost of its messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from bench import Bench
from cases import Result, cpu_text, measured, reading
from sides import Case


@dataclass(frozen=True)
class Line:
    """The seconds of a query as those that it takes whatever it reads, and those for each message.

    Args:
        start_s: Seconds of a query that reads nothing, as two sizes tell.
        rate: Messages per second beyond that.
    """

    start_s: float
    rate: float


def line(sizes: Sequence[int], seconds: Sequence[float]) -> Line:
    """The line through two queries.

    >>> line([1_000_000, 8_000_000], [3.0, 17.0])
    Line(start_s=1.0, rate=500000.0)
    """
    rate = (sizes[1] - sizes[0]) / (seconds[1] - seconds[0])
    return Line(seconds[0] - sizes[0] / rate, rate)


def run_whole(bench: Bench, cases: Sequence[Case], sizes: Sequence[int], only: str) -> None:
    """Measures the cases whose name holds a text, over topics of both sizes, and prints each."""
    wanted = [case for case in cases if only in case.name]
    for format_, of_topics in groupby(wanted, lambda case: case.format):
        benches = [replace(bench, count=size) for size in sizes]
        topics = [bench.filled(size, size, format_, deletes=True) for size in sizes]
        for case in of_topics:
            results = [
                measured(each, case, reading(each, case, topic), warm_up=each is benches[0])
                for each, topic in zip(benches, topics, strict=True)
            ]
            print(f"\n{case.name}")
            for size, result in zip(sizes, results, strict=True):
                _show_size(size, result)
            _show_lines(sizes, results)
        for topic in topics:
            bench.drop(topic)


def _show_size(size: int, result: Result) -> None:
    print(
        f"{size:>12,} messages, per second: {result.ours:>10,.0f}  Spark {result.theirs:>10,.0f}  "
        f"ratio {result.ratio:.2f} ({result.lowest:.2f}-{result.highest:.2f})  peak {result.peak_mb:,.0f} MB  "
        f"core-µs a row {cpu_text(result.ours_cpu)} / {cpu_text(result.theirs_cpu)}"
    )


def _show_lines(sizes: Sequence[int], results: Sequence[Result]) -> None:
    ours, theirs = (
        line(sizes, [size / rate for size, rate in zip(sizes, rates, strict=True)])
        for rates in ([each.ours for each in results], [each.theirs or 0.0 for each in results])
    )
    print(
        f"{'':>12} start {ours.start_s:.1f} s, Spark {theirs.start_s:.1f} s; beyond it per second: "
        f"{ours.rate:,.0f}  Spark {theirs.rate:,.0f}  ratio {ours.rate / theirs.rate:.2f}",
        flush=True,
    )

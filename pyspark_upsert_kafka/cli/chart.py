"""A line chart as SVG, drawn by hand: no plotting library for one picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, cycle
from operator import mul

_WIDTH, _HEIGHT = 920, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 236, 70, 56

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#404040")
"""Okabe and Ito's, which people with a colour vision deficiency tell apart too."""

_STYLE = (
    "text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;"
    "font-size:13px;fill:#444} .title{font-size:18px;font-weight:600;fill:#111} "
    ".grid{stroke:#e4e4e4} .axis{stroke:#888} "
    ".line{fill:none;stroke-width:2.5;stroke-linejoin:round;stroke-linecap:round}"
)


@dataclass(frozen=True)
class Chart:
    """What the picture says.

    Args:
        title: Above it.
        across: Name of the horizontal axis.
        up: Name of the vertical axis.
        lines: Name of each line and its values, the first at 1 on the horizontal axis.
    """

    title: str
    across: str
    up: str
    lines: Mapping[str, Sequence[int]]

    def svg(self) -> str:
        """The picture."""
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
                f"<title>{escape(self.title)}</title>",
                f"<style>{_STYLE}</style>",
                f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
                f'<text class="title" x="{_LEFT}" y="34">{escape(self.title)}</text>',
                *self._axes(),
                *self._lines(),
                *self._legend(),
                "</svg>\n",
            ]
        )

    @property
    def _count(self) -> int:
        return max((len(values) for values in self.lines.values()), default=1)

    @property
    def _top(self) -> int:
        """The highest tick."""
        return ticks(max((max(values, default=0) for values in self.lines.values()), default=0))[-1]

    def _x(self, place: float) -> float:
        wide = _WIDTH - _LEFT - _RIGHT
        return round(_LEFT + wide * (place - 1) / max(1, self._count - 1), 1)

    def _y(self, value: float) -> float:
        high = _HEIGHT - _TOP - _BOTTOM
        return round(_HEIGHT - _BOTTOM - high * value / self._top, 1)

    def _axes(self) -> Iterator[str]:
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        for value in ticks(self._top):
            y = self._y(value)
            yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
            yield f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end">{value:,}</text>'
        step = max(1, ticks(self._count)[1])
        for place in (1, *range(step if step > 1 else 2, self._count + 1, step)):
            yield f'<text x="{self._x(place)}" y="{bottom + 20}" text-anchor="middle">{place}</text>'
        yield f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
        middle = (_LEFT + right) / 2
        yield f'<text x="{middle}" y="{bottom + 42}" text-anchor="middle">{escape(self.across)}</text>'
        yield f'<text x="{_LEFT - 10}" y="{_TOP - 14}" text-anchor="end">{escape(self.up)}</text>'

    def _lines(self) -> Iterator[str]:
        for values, colour in zip(self.lines.values(), cycle(_COLOURS), strict=False):
            places = [(self._x(at), self._y(value)) for at, value in enumerate(values, 1)]
            points = " ".join(f"{x},{y}" for x, y in places)
            yield f'<polyline class="line" stroke="{colour}" points="{points}"/>'
            yield from (f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places)

    def _legend(self) -> Iterator[str]:
        """Names with their last values, in the order in which the lines end."""
        coloured = zip(self.lines.items(), cycle(_COLOURS), strict=False)
        by_end = sorted(coloured, key=lambda entry: -(entry[0][1] or [0])[-1])
        left, right = _WIDTH - _RIGHT + 28, _WIDTH - 24
        for row, ((name, values), colour) in enumerate(by_end):
            y = _TOP + 10 + 24 * row
            yield f'<line class="line" stroke="{colour}" x1="{left}" x2="{left + 18}" y1="{y}" y2="{y}"/>'
            yield f'<text x="{left + 26}" y="{y + 4}">{escape(name)}</text>'
            yield f'<text x="{right}" y="{y + 4}" text-anchor="end">{(values or [0])[-1]:,}</text>'


def ticks(largest: int) -> list[int]:
    """Round numbers from 0 up to the largest or just above it, at most seven.

    >>> ticks(87_000)
    [0, 20000, 40000, 60000, 80000, 100000]
    """
    largest = max(1, largest)
    steps = accumulate(cycle((2, 2.5, 2)), mul, initial=1.0)  # 1, 2, 5, 10, 20, 50, ...
    step = next(int(step) for step in steps if step * 6 >= largest)
    return [step * number for number in range(-(-largest // step) + 1)]

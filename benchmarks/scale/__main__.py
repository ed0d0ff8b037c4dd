"""`make scale`: measures how large tables, many partitions and many micro-batches are read, and writes docs/scale.md and docs/many-tables.md.

ARGS="keys wide" measures only these parts. Times count only with --quiet, which says that the machine has no other work;
memory, counts and growth are measured beside other work too. The parts:

    keys       tables of up to 50 million keys, beside a model from small ones (ten minutes on two free cores)
    wide       one topic of 1,000 partitions, and 1,000 topics (ten minutes)
    executors  a cluster of four executors (two minutes)
    week       ten streams, together 100,000 triggers (an hour)
    tables     forty queries of one driver, each of a table of its own (ten minutes)
    direct     100,000 micro-batches of the connector alone (ten minutes)

`--page` only writes the page anew, from what was measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

import pyspark

from scale.page import with_tables

MEASURED = Path(__file__).with_name("measured.json")
PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("scale.md", "many-tables.md")]


def main() -> None:
    """Measures the parts, each in a process of its own, and writes the page."""
    given = _arguments()
    if len(given.parts) == 1:
        _measure(given.parts[0], given)
    else:
        rest = [argument for argument in sys.argv[1:] if argument not in PARTS]
        for part in [] if given.page else given.parts or PARTS:
            subprocess.run([sys.executable, "-m", "scale", part, *rest], check=True)
    for page in PAGES:
        text = with_tables(page.read_text(encoding="utf-8"), _measured())
        page.write_text(text, encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help="what is measured; all of it by default")
    parser.add_argument("--quiet", action="store_true", help="the machine has no other work")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--largest", type=int, default=50_000_000, help="messages of a table")
    parser.add_argument("--runs", type=int, default=3, help="how often small tables are read")
    parser.add_argument("--partitions", type=int, default=1_000, help="partitions, and topics")
    parser.add_argument("--triggers", type=int, default=100_000, help="of the streams of `week`")
    parser.add_argument("--direct-batches", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=180, help="most time of `week`, `direct`")
    parser.add_argument("--tables", type=int, default=40, help="queries of `tables`")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(unknown)}")
    return given


PARTS: dict[str, Callable[[argparse.Namespace], dict]] = {
    "keys": lambda given: _part("keys").measure(largest=given.largest, runs=given.runs),
    "wide": lambda given: _part("wide").measure(count=given.partitions),
    "executors": lambda _: _part("executors").measure(),
    "tables": lambda given: _part("tables").measure(count=given.tables),
    "week": lambda given: _part("week").measure(
        triggers=given.triggers, seconds=given.minutes * 60
    ),
    "direct": lambda given: _part("direct").measure(
        batches=given.direct_batches, seconds=given.minutes * 60
    ),
}
"""What is measured, by its name on the command line."""


def _part(name: str) -> Any:
    """The module of a part: `tables` runs with an older PySpark too, which the others cannot."""
    return import_module(f"scale.{name}")


def _measure(part: str, given: argparse.Namespace) -> None:
    found = PARTS[part](given)
    about = {
        "quiet": given.quiet,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "pyspark": pyspark.__version__,
    }
    # Tables that are only read are another measurement than those that are merged.
    name = part if found.get("merges", True) else f"{part}-read"
    measured = _measured() | {name: about | found}
    MEASURED.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


def _measured() -> dict:
    return json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}


if __name__ == "__main__":
    main()

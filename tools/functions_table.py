"""Writes the table of functions into docs/sql.md: ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark_upsert_kafka.sql.functions import FUNCTIONS, OVER_ROWS
from pyspark_upsert_kafka.sql.rejected_functions import REJECTED

_BEGIN = "<!-- Made by `make docs` from sql/functions.py and sql/rejected_functions.py. Change those, not this table. -->\n"
_END = "<!-- The end of the table of functions. -->\n"

WITH_SYNTAX = {
    "AVG": ("AVG(x)", "`AVG`, in the type of `x`; of a whole number `SUM(x) DIV COUNT(x)`. A DECIMAL is rejected"),
    "CAST": ("CAST(x AS type)", "`CAST`, where it gives the same: [above](#values)"),
    "CEIL": ("CEIL(x)", "`CEIL`, in the type of `x`"),
    "COALESCE": ("COALESCE(x, ...)", "`COALESCE`"),
    "COUNT": ("COUNT(*), COUNT(x), COUNT(DISTINCT x)", "`COUNT`; in a stream, `size(collect_set(x))` for distinct values"),
    "CURRENT_DATE": ("CURRENT_DATE", "`CURRENT_DATE`: one for all rows of a micro-batch"),
    "CURRENT_TIMESTAMP": ("CURRENT_TIMESTAMP", "`CURRENT_TIMESTAMP`: one for all rows of a micro-batch"),
    "EXTRACT": (
        "EXTRACT(field FROM x)",
        "`EXTRACT` of YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, DOW, DOY, ISODOW, ISOYEAR",
    ),
    "FLOOR": ("FLOOR(x), FLOOR(x TO unit)", "`FLOOR`, in the type of `x`; `date_trunc` to SECOND, MINUTE, HOUR, DAY, MONTH, QUARTER, YEAR"),
    "MAX": ("MAX(x)", "`MAX`"),
    "MIN": ("MIN(x)", "`MIN`"),
    "POSITION": ("POSITION(part IN text)", "`instr(text, part)`"),
    "SUM": ("SUM(x)", "`SUM`, in the type of `x`; of a DECIMAL with 38 digits"),
    "TRIM": ("TRIM([LEADING\\|TRAILING\\|BOTH] [x FROM] text)", "`TRIM`"),
    "TRY_CAST": ("TRY_CAST(x AS type)", "`TRY_CAST`, where both make NULL of the same"),
}  # fmt: skip
"""Functions with a syntax of their own, and those whose type sqlglot finds: the call, and what it is in Spark."""


def functions_table() -> str:
    """The table: each function once, by its name."""
    rows = {
        **{name: (f"`{call}`", spark) for name, (call, spark) in WITH_SYNTAX.items()},
        **{name: _taken(name) for name in FUNCTIONS},
        **{
            name: (f"`{name}(...) OVER (...)`", f"`{name}`; only in batch mode")
            for name in OVER_ROWS
        },
        **{
            name: (f"`{name}`", f"rejected: {why}")
            for name, why in REJECTED.items()
            if name not in FUNCTIONS
        },
    }
    lines = [f"| {call} | {spark} |\n" for _, (call, spark) in sorted(rows.items())]
    return "".join(["| in Flink | in Spark |\n|---|---|\n", *lines])


def _taken(name: str) -> tuple[str, str]:
    forms = [form.split("->", 1) for form in FUNCTIONS[name].forms]
    calls = [f"`{name}({arguments.strip()})`" for arguments, _ in forms]
    shown = [spark.strip().replace("\r\n", r"\r\n") for _, spark in forms]
    return "<br>".join(calls), "<br>".join(f"`{spark}`" for spark in shown)


def with_table(page: str) -> str:
    """The page with the table of today."""
    before, _, rest = page.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{functions_table()}\n{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")

"""Writes the tables of functions into docs/sql-functions.md and docs/sql-limits.md: ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark_upsert_kafka.sql.sql_functions import FUNCTIONS, OVER_ROWS, REJECTED

_BEGIN = "<!-- Made by `make docs` from FUNCTIONS in sql/sql_functions.py. Change that, not this table. -->\n"
_END = "<!-- The end of the table of functions. -->\n"
_BEGIN_REJECTED = "<!-- Made by `make docs` from REJECTED in sql/sql_functions.py. Change that, not this table. -->\n"
_END_REJECTED = "<!-- The end of the table of rejected functions. -->\n"

WITH_SYNTAX = {
    "AVG": ("AVG(x)", "`AVG`, in the type of `x`; of a whole number `SUM(x) DIV COUNT(x)`. A DECIMAL is rejected"),
    "CAST": ("CAST(x AS type)", "`CAST`, where it gives the same: [values](sql-limits.md#values)"),
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
    """The table of what is supported: each function once, by its name."""
    rows = {
        **{name: (f"`{call}`", spark) for name, (call, spark) in WITH_SYNTAX.items()},
        **{name: _taken(name) for name in FUNCTIONS},
        **{
            name: (f"`{name}(...) OVER (...)`", f"`{name}`; only in batch mode")
            for name in OVER_ROWS
        },
    }
    lines = [f"| {call} | {spark} |\n" for _, (call, spark) in sorted(rows.items())]
    return "".join(["| in Flink | in Spark |\n|---|---|\n", *lines])


def rejected_table() -> str:
    """The table of what is rejected: each reason once, with its functions."""
    names: dict[str, list[str]] = {}
    for name, why in sorted(REJECTED.items()):
        if name not in FUNCTIONS:
            names.setdefault(why, []).append(f"`{name}`")
    lines = [f"| {', '.join(same)} | {_sentence(why)} |\n" for why, same in names.items()]
    return "".join(["| in Flink | why it is rejected, and what to use |\n|---|---|\n", *lines])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].replace("|", "\\|")


def _taken(name: str) -> tuple[str, str]:
    forms = [form.split("->", 1) for form in FUNCTIONS[name].forms]
    calls = [f"`{name}({arguments.strip()})`" for arguments, _ in forms]
    shown = [spark.strip().replace("\r\n", r"\r\n") for _, spark in forms]
    return "<br>".join(calls), "<br>".join(f"`{spark}`" for spark in shown)


def with_tables(page: str) -> str:
    """The page with the tables of today, where it has their marks."""
    page = _between(page, _BEGIN, functions_table(), _END)
    return _between(page, _BEGIN_REJECTED, rejected_table(), _END_REJECTED)


def _between(page: str, begin: str, table: str, end: str) -> str:
    before, mark, rest = page.partition(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}" if mark else page


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")

"""Writes the table of faults into docs/reliability.md: ``make fault-table``. Each fault happens once; it takes some minutes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from pyspark_upsert_kafka import LocalKafka
from tests.conftest import broker_at
from tests.kafka.fault_table import head, table

BEGIN = "<!-- Made by `make fault-table` from tests/kafka/fault_table.py. Change that, not this table. -->\n\n"
END = "\n<!-- The end of the table of faults. -->\n"


def fault_table_text(rows: Iterable[str]) -> str:
    """The table with its head."""
    return "".join(f"{line}\n" for line in (head(), *rows))


def shown_table(page: str) -> str:
    """The table that a page shows."""
    return page.partition(BEGIN)[2].partition(END)[0]


def with_table(page: str, text: str) -> str:
    """The page with another table."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    with LocalKafka() as kafka:
        made = fault_table_text(row.text() for row in table(broker_at(kafka.bootstrap_servers)))
    path.write_text(with_table(path.read_text(encoding="utf-8"), made), encoding="utf-8")

"""Answers of a broker that are lost, late, cut off or errors, one kind of request after another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Broker
from tests.kafka.fault_proxy import Api, Fault, Kind
from tests.kafka.fault_table import MOST_S, WORKS, outcome, table

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"

BY_NAME = {work.name: work for work in WORKS}

CHEAP = [
    ("planning", Fault(Api.METADATA, Kind.CUT)),
    ("planning", Fault(Api.LIST_OFFSETS, Kind.ERROR, code=6)),
    ("starting at a group's offsets", Fault(Api.FIND_COORDINATOR, Kind.LOST)),
    ("starting at a group's offsets", Fault(Api.OFFSET_FETCH, Kind.ERROR, code=14)),
    ("reading", Fault(Api.FETCH, Kind.ERROR, code=-1)),
    ("reading", Fault(Api.FETCH, Kind.TRUNCATED)),
    ("reading", Fault(Api.FIND_COORDINATOR, Kind.ERROR, code=-1, times=1000)),
    ("writing", Fault(Api.DESCRIBE_CONFIGS, Kind.ERROR, code=-1)),
    ("writing", Fault(Api.PRODUCE, Kind.CUT)),
    ("writing exactly once", Fault(Api.ADD_PARTITIONS_TO_TXN, Kind.CUT)),
    ("writing exactly once", Fault(Api.TXN_OFFSET_COMMIT, Kind.ERROR, code=14)),
    ("writing exactly once", Fault(Api.END_TXN, Kind.CUT)),
]


@pytest.mark.parametrize(
    ("name", "fault"), CHEAP, ids=[f"{name}, {fault.api.name} {fault.kind.value}" for name, fault in CHEAP]
)  # fmt: skip
def test_everything_goes_on_after_a_fault(broker: Broker, name: str, fault: Fault) -> None:
    """One answer that does not come, or is an error that passes, fails nothing, and every message is there once."""
    found = outcome(broker, BY_NAME[name], fault)

    assert found.error is None
    assert found.seen


@pytest.mark.long("some ninety faults, each waits for the request timeout")
@pytest.mark.alone("asserts that all goes on in time")
def test_the_table_of_faults(broker: Broker) -> None:
    """What docs/reliability.md shows of each request and fault is what happens, within the request timeout and five seconds."""
    rows = [*table(broker)]

    late = [row for row in rows for cell in row.outcomes if cell.seconds > MOST_S]
    text = PAGE.read_text()
    shown = re.search(r"\n(\| while \| answer to .*?)\n\n", text, re.DOTALL)
    assert shown is not None
    made = "\n".join(row.text() for row in rows)
    assert not late, made
    assert shown[1].split("\n")[2:] == made.split("\n"), f"the page should have:\n{made}"

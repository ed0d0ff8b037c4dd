"""What docs/database-to-iceberg.md tells Postgres and Debezium to do; not part of ``make test`` but run by ``make test-debezium``."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path

from tests.debezium.recording import comparable
from tests.spark.pages import DATABASE_TO_ICEBERG
from tools.debezium.engine import engine
from tools.debezium.postgres import postgres
from tools.recorded_debezium import HEARTBEAT_TOPIC, record
from tools.recorded_debezium.__main__ import OF_THE_PAGE
from tools.recorded_debezium.columns import COLUMNS
from tools.recorded_debezium.messages import DATABASE
from tools.recorded_debezium.statements import create_table


def test_debezium_writes_the_recording_of_the_page(tmp_path: Path) -> None:
    """Its statements and its connector, with a user who may only replicate and read, give the messages that the tool writes."""
    page = DATABASE_TO_ICEBERG.read_text(encoding="utf-8")
    (statements,) = blocks(page, "sql")
    (connector,) = blocks(page, "json")
    elsewhere = {"database.hostname", "database.port"}
    settings = {k: v for k, v in json.loads(connector)["config"].items() if k not in elsewhere}
    recording = record(OF_THE_PAGE)
    expected = [comparable(each) for each in recording.messages if each.topic != HEARTBEAT_TOPIC]

    with postgres() as server:
        server.run(create_table(COLUMNS, "default"), *recording.before[1:])
        server.psql(DATABASE, statements)
        with engine(server, tmp_path, **settings) as messages:
            others = (each for each in messages if each.topic != HEARTBEAT_TOPIC)
            found = list(islice(others, OF_THE_PAGE.rows))
            for transaction in recording.transactions:
                server.run(*transaction)
            found += islice(others, len(expected) - OF_THE_PAGE.rows)

    assert [comparable(each) for each in found] == expected


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)

"""A program that follows a topic with `read_changes` is killed, or interrupted, at random and at chosen moments, while others write: its table is right."""

from __future__ import annotations

import ast
import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyspark_upsert_kafka import read_table
from tests.conftest import Broker, options
from tests.kafka.conftest import Edge
from tests.kafka.follower import COLUMNS, PLACES, Job, follow
from tests.spark.pages import ROOT, snippets

PARTITIONS = 3
KEYS = 300
KILLS = 30
A_ROUND = 250

Row = tuple[Any, ...]


class Writer:
    """Changes rows of a table, and knows its rows.

    Args:
        broker: Where it is.
        topic: The topic.
        seed: Where all random choices come from.
    """

    def __init__(self, broker: Broker, topic: str, seed: int) -> None:
        self._broker, self._topic, self._choices = broker, topic, random.Random(seed)
        self._rows: dict[int, Row] = {}
        self.count = 0

    def write(self, count: int) -> None:
        """So many changes; every fifth is a delete."""
        messages = []
        for number in range(self.count, self.count + count):
            id_ = self._choices.randrange(KEYS)
            value = None
            self._rows.pop(id_, None)
            if self._choices.random() > 0.2:
                row = self._rows[id_] = (id_, f"n{number}", self._choices.choice([None, "Asia"]))
                value = json.dumps(dict(zip(("user_id", "name", "region"), row, strict=True)))
            messages.append((json.dumps({"user_id": id_}), value))
        self._broker.produce(self._topic, *messages)
        self.count += count

    @property
    def rows(self) -> set[Row]:
        """The table by now."""
        return set(self._rows.values())


def code_of_page() -> str:
    """The code of the section on DuckDB, up to where it begins to read."""
    page = (ROOT / "docs" / "read-changes.md").read_text(encoding="utf-8")
    (code,) = (each.code for each in snippets(page) if each.heading == "DuckDB")
    body = ast.parse(code).body
    (last,) = (n for n, each in enumerate(body) if getattr(each, "name", "") == "follow")
    return ast.unparse(ast.Module(body[: last + 1], []))


def job_of(edge: Edge, broker: Broker, topic: str, store: str, folder: Path) -> Job:
    """What follows the topic, in batches of some hundred messages."""
    accepted = {} if edge.has_transactions else {"properties.isolation.level": "read_uncommitted"}
    given = {"kafka.client": edge.client, "primary-key": "user_id", "maxOffsetsPerTrigger": A_ROUND}
    return Job(options(broker, topic, **given, **accepted), store, str(folder), code_of_page())


def kill(
    job: Job,
    writer: Writer,
    choices: random.Random,
    after: int | None = None,
    by: signal.Signals = signal.SIGKILL,
) -> None:
    """Runs the program, which gets more to read with each batch, and kills itself at its place, or is killed after so many batches."""
    process = subprocess.Popen(
        [sys.executable, *job.arguments()], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    for batches, _ in enumerate(process.stdout):
        writer.write(choices.randrange(1, 2 * A_ROUND))
        if batches == after:
            time.sleep(choices.uniform(0.0, 0.1))
            process.send_signal(by)
    _, said = process.communicate(timeout=300)
    if by == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL, said
    else:
        # What DuckDB raises for a Ctrl-C within a statement is the second.
        assert said.rstrip().endswith(("KeyboardInterrupt", "RuntimeError: Query interrupted")), (
            said
        )
        assert process.returncode in (1, 130, -signal.SIGINT), said  # and no crash


def check_table(job: Job, writer: Writer) -> None:
    """What follows goes on to the end: its table is that of the topic, and each change since the table was given."""
    follow(replace(job, to_end=True))
    in_topic = read_table(job.options, schema=COLUMNS).read_all().to_pylist()
    assert job.rows() == {tuple(row.values()) for row in in_topic} == writer.rows

    given, positions = job.messages(), job.positions()
    table = [each for each in positions if each.get("table")][-1]
    begins, ends = (each["topics"][job.options["topic"]]["positions"] for each in (table, positions[-1]))  # fmt: skip
    changes = {(int(number), n) for number, end in ends.items() for n in range(begins[number], end)}
    assert changes - set(given) == set()
    if job.store == "duckdb":
        assert len(given) == len(set(given))


@pytest.mark.parametrize("store", PLACES)
def test_a_kill_before_the_position_is_saved(
    edge: Edge, broker: Broker, tmp_path: Path, store: str
) -> None:
    """The batch comes again: it is not in the table, or it changes nothing there."""
    topic = broker.topic(PARTITIONS)
    writer = Writer(broker, topic, seed=1)
    writer.write(600)
    job = job_of(edge, broker, topic, store, tmp_path)

    place = {"duckdb": "committing", "sqlite": "applied"}[store]
    kill(replace(job, place=place, batch=2), writer, random.Random(1))

    check_table(job, writer)


@pytest.mark.long("kills a program thirty times")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("store", PLACES)
def test_kills_at_any_moment(edge: Edge, broker: Broker, tmp_path: Path, store: str) -> None:
    """While others write: at each place of applying and saving, in any batch, and at any other moment; there by Ctrl-C too."""
    topic = broker.topic(PARTITIONS)
    choices = random.Random(f"{edge.client} {store}")
    writer = Writer(broker, topic, seed=2)
    writer.write(5_000)
    job = job_of(edge, broker, topic, store, tmp_path)
    for number in range(KILLS):
        if number % 3 == 0:
            by = signal.SIGINT if number % 2 else signal.SIGKILL
            kill(job, writer, choices, after=choices.randint(0, 5), by=by)
        else:
            place = PLACES[store][number % len(PLACES[store])]
            kill(replace(job, place=place, batch=choices.randint(1, 5)), writer, choices)

    check_table(job, writer)
    assert len(job.positions()) > KILLS

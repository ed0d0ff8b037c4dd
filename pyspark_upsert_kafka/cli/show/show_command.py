"""The command ``show``: its arguments decide what is read and how it is printed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

import pyarrow as pa

from pyspark_upsert_kafka.cli.arguments import (
    UnknownColumnsError,
    checked_options,
    checked_table,
    table_options,
)
from pyspark_upsert_kafka.cli.show import ALL
from pyspark_upsert_kafka.cli.show.one_key import OneKey, SoughtKey, one_key
from pyspark_upsert_kafka.cli.show.row_printing import (
    FirstRows,
    Output,
    output_named,
    write_numbers,
)
from pyspark_upsert_kafka.cli.show.topic_reading import Follower, counted, raw_messages, rows_of
from pyspark_upsert_kafka.connector.read_request import Request
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import DecodeError, OptionError, printable, shown
from pyspark_upsert_kafka.core.options.properties import client_properties

_ROWS_OF_A_TABLE = 20
"""Rows that are printed in a table when there is no ``--limit``."""

_CONTRADICTIONS = {
    ("count", "follow"): "--count ends with a number, and --follow does not end",
    ("count", "limit"): "--count counts all of it",
    ("count", "key"): "--count counts all keys",
    ("at", "follow"): "--at looks back, and --follow forward",
}

_TEXTS = ("topic", "schema", "primary_key", "key")


def show(given: argparse.Namespace) -> None:
    """Shows what the arguments say. Raises UpsertKafkaError."""
    if sys.stdout is None:
        raise OptionError("Standard output is closed: there is nowhere to show anything.")
    _check_arguments(given)
    given.output = output_of(given, terminal=sys.stdout.isatty())
    if given.limit is None:
        given.limit = _ROWS_OF_A_TABLE if given.output == "table" else ALL
    request = request_of(given)
    if request.options.merges_partitions and (given.follow or given.count):
        raise OptionError(
            "--follow and --count look at each partition by itself: leave out 'scan.snapshot.merge-partitions'."
        )
    key = None if given.key is None else one_key(given.key, request.table)
    try:
        if given.follow:
            _follow(given, request, key)
        elif given.count:
            _count(given.output, request)
        else:
            _print(given, request, key)
    except DecodeError as error:
        if error.stage != "null-key" or request.options.table.is_cdc:
            raise
        raise _NoKeyError(*error.args) from None


class _NoKeyError(DecodeError):
    """A message without a key: perhaps the topic does not hold a table."""

    def __str__(self) -> str:
        return f"{super().__str__()} If no message of the topic has a key: --append shows each as a row."


def _check_arguments(given: argparse.Namespace) -> None:
    """Raises OptionError for two arguments that contradict each other, and for a text that is not valid Unicode."""
    for name in _TEXTS:
        text = getattr(given, name) or ""
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise OptionError(f"--{name.replace('_', '-')} is not valid Unicode: {text!r}.")
    for (one, other), why in _CONTRADICTIONS.items():
        if _is_given(given, one) and _is_given(given, other):
            raise OptionError(f"--{one} and --{other} contradict each other: {why}. Leave one out.")


def _is_given(given: argparse.Namespace, name: str) -> bool:
    """Whether an argument stands on the command line; a time may be 0."""
    value = getattr(given, name)
    return value is not None and value is not False


def output_of(given: argparse.Namespace, *, terminal: bool) -> str:
    """The value of ``--output``, or its default; a live table is drawn on a terminal only.

    Raises:
        OptionError: A live table is wanted where none can be drawn.
    """
    if given.follow and given.output == "table" and not terminal:
        raise OptionError(
            "--follow redraws its table, which needs a terminal: into a pipe or a file, give --output json or csv."
        )
    if given.csv_formulas is not None and given.output != "csv":
        raise OptionError("--csv-formulas is about CSV: add --output csv, or leave it out.")
    if given.output is not None:
        return str(given.output)
    return "json" if given.follow and not terminal else "table"


def _print(given: argparse.Namespace, request: Request, key: OneKey | None) -> None:
    """Prints a table in the order of its key; changes, and a whole table as JSON or CSV, as they are read."""
    ordered = request.options.mode == "snapshot" and (given.limit != ALL or given.output == "table")
    prints = not ordered and given.output != "table"
    sought = None if key is None else SoughtKey(key)
    with closing(rows_of(request, sought, prints=prints)) as found:
        output = _output(given, request)
        if ordered:
            note = _write_first(output, found, FirstRows(request.table.key_names, given.limit))
        else:
            note = _write_found(output, found, given.limit)
    output.end(note)
    absence = sought and sought.absence()
    if absence:
        sys.stderr.write(f"{absence}\n")


def _output(given: argparse.Namespace, request: Request) -> Output:
    escapes = given.csv_formulas == "escape"
    return output_named(given.output, request.table.schema, escapes_formulas=escapes)


def _write_first(output: Output, found: Iterable[pa.RecordBatch], first: FirstRows) -> str:
    """Writes the first rows by their key; returns a note when there are more."""
    for rows in found:
        first.add(rows)
    for rows in first.rows():
        output.write(rows)
    if first.limit == ALL or first.count <= first.limit:
        return ""
    return f"{first.limit:,} of {first.count:,} rows; --limit all prints all."


def _write_found(output: Output, found: Iterable[pa.RecordBatch], limit: int) -> str:
    """Writes rows as they are read; returns a note when the limit is reached."""
    printed = 0
    for rows in limited(found, limit):
        output.write(rows)
        printed += rows.num_rows
    # Whether there are more is not known: nothing is read beyond the limit.
    return f"The first {limit:,} rows; --limit all prints all." if printed == limit else ""


def limited(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """The rows up to a limit; after that, no further batch is read."""
    left = sys.maxsize if limit == ALL else limit
    for rows in batches:
        yield rows.slice(0, left)
        left -= rows.num_rows
        if left <= 0:
            return


def _count(output: str, request: Request) -> None:
    counts = counted(request)
    numbers = {name: number for name, number in asdict(counts).items() if isinstance(number, int)}
    if not request.table.is_keyed:
        del numbers["live_keys"], numbers["tombstones"]
    write_numbers(output, numbers)
    if counts.first_bad is not None:
        sys.stderr.write(f"The first bad message: {printable(str(counts.first_bad))}\n")


def _follow(given: argparse.Namespace, request: Request, key: OneKey | None) -> None:
    """Prints changes until Ctrl-C, which ``run`` handles."""
    from pyspark_upsert_kafka.cli.show.topic_reading import Follower

    follower = Follower(request, key)
    if given.output != "table":
        _print_changes(given, request, follower)
        return
    from pyspark_upsert_kafka.cli.show.live_table import redraw

    redraw(request, follower.changes(), sys.maxsize if given.limit == ALL else given.limit)


def _print_changes(given: argparse.Namespace, request: Request, follower: Follower) -> None:
    schema = arrow_schema(request.table.schema)
    output = _output(given, request)
    batches = (
        pa.RecordBatch.from_arrays(change[1].columns, schema=schema)
        for change in follower.changes()
        if change is not None
    )
    for rows in limited(batches, given.limit):
        output.write(rows)


def request_of(given: argparse.Namespace) -> Request:
    """What the arguments ask for.

    Raises:
        OptionError: An option is wrong, or columns or key are missing; then the error shows the topic's first message.
        SchemaError: Columns, key or types do not fit.
    """
    raw = connector_options(given)
    try:
        options = checked_options(given, raw)
    except UnknownColumnsError as error:
        raise OptionError(f"{error}\n{_first_message(raw)}") from None
    return checked_table(given, raw, options)


def connector_options(given: argparse.Namespace) -> dict[str, str]:
    """The connector's options."""
    end = {}
    if given.at is not None:
        end = {
            "scan.bounded.mode": "timestamp",
            "scan.bounded.timestamp-millis": str(given.at),
        }
    return table_options(given, "changelog" if _prints_changes(given) else "snapshot", end)


def _prints_changes(given: argparse.Namespace) -> bool:
    """Whether ``--follow`` prints each change as a line, and redraws no table."""
    return bool(given.follow) and given.output != "table"


def _first_message(raw: Mapping[str, str]) -> str:
    """The first message of the topic, as a hint about its columns."""
    topic = raw.get("topic")
    if topic is None:
        return "And name the topic: --topic."
    first = next(raw_messages(client_properties(dict(raw), group_start=False), topic), None)
    if first is None:
        return f"Topic {topic!r} has no message yet."
    return (
        f"The first message of topic {topic!r}:\n"
        f"  key    {shown(first.key)}\n  value  {shown(first.value)}"
    )

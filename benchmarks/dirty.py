"""What bad messages cost: messages of seven columns, some of them bad, decoded in one process.

Each cell is the CPU time of a batch beside that of the row path for the same messages, which reads them one by one; what other work
there is on the machine changes such a ratio little. `python benchmarks/dirty.py` prints the table alone.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from data import SCHEMA
from descriptors import descriptor_file

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder

MESSAGES = 20_000
_BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
RUNS = 5
SHARES = {
    "none": 0,
    "1 in 20,000": 20_000,
    "1 in 1,000": 1_000,
    "1 in 100": 100,
    "1 in 10": 10,
    "all": 1,
}
"""One message of so many is bad; 0 = none is."""


@dataclass(frozen=True)
class Dirt:
    """How the messages of a format are spoiled.

    Args:
        format: The format.
        how: What is wrong with a bad message.
        spoil: Makes a message bad.
    """

    format: str
    how: str
    spoil: Callable[[bytes], bytes]


DIRT = (
    Dirt("json", "a text where a number belongs", lambda m: m.replace(b'"clicks":', b'"clicks":"x","":')),
    Dirt("json", "a comma is missing", lambda m: m.replace(b",", b" ", 1)),
    Dirt("json", "a time that is none", lambda m: m.replace(b"2026-", b"2026-13-")),
    Dirt("json", "cut", lambda m: m[:-1]),
    Dirt("csv", "a text where a number belongs", lambda m: b"x" + m),
    Dirt("csv", "a time that is none", lambda m: m.replace(b"2026-", b"2026-13-")),
    Dirt("csv", "cut", lambda m: m[: m.rindex(b",")]),
    Dirt("avro", "cut", lambda m: m[:-1]),
    Dirt("protobuf", "cut", lambda m: m[:-1]),
)  # fmt: skip


def run_dirty() -> None:
    """Prints the table."""
    print(
        f"\nbad messages: CPU time beside that of the row path alone, {MESSAGES:,} messages in one batch, the least of {RUNS} runs"
    )
    print(f"{'':<40}{'µs, clean':>10}{'by rows':>9}" + "".join(f"{share:>13}" for share in SHARES))
    with tempfile.TemporaryDirectory() as folder:
        for dirt in DIRT:
            decoder, good = _table(dirt.format, Path(folder))
            cells = [
                _cell(decoder, _spoiled(good, dirt.spoil, one_in)) for one_in in SHARES.values()
            ]
            ours, by_rows = cells[0]
            line = f"{dirt.format + ': ' + dirt.how:<40}{ours:>10.2f}{by_rows:>9.2f}"
            print(line + "".join(f"{our / rows:>13.2f}" for our, rows in cells), flush=True)


def _table(name: str, folder: Path) -> tuple[Decoder, list[bytes]]:
    """The decoder of seven columns, and messages written by the same format."""
    format_, schema = format_named(name, "value"), spark_columns(SCHEMA)
    given = descriptor_file(folder) if name == "protobuf" else {}
    options = {
        option.name: given.get(f"value.protobuf.{option.name}", option.default)
        for option in format_.options
    }
    spec = CodecSpec(schema, "value", options)
    rows = pa.RecordBatch.from_pylist([_row(at) for at in range(MESSAGES)], arrow_schema(schema))
    return format_.decoder(spec), format_.encoder(spec).encode(rows).to_pylist()


def _row(at: int) -> dict[str, Any]:
    """As ``data.rows`` has them."""
    return {
        "id": at,
        "name": f"user {at % 1000}",
        "region": f"region-{at % 10}",
        "score": at * 0.37,
        "clicks": at % 100,
        "active": at % 2 == 0,
        "updated": _BEGIN + timedelta(milliseconds=at),
    }


def _spoiled(good: Sequence[bytes], spoil: Callable[[bytes], bytes], one_in: int) -> BytesColumn:
    """The messages, one of so many spoiled, at random places."""
    chosen = Random(7).sample(range(len(good)), len(good) // one_in) if one_in else []
    bad = {at: spoil(good[at]) for at in chosen}
    return BytesColumn.of(bad.get(at, message) for at, message in enumerate(good))


def _cell(decoder: Decoder, messages: BytesColumn) -> tuple[float, float]:
    """The microseconds of CPU for a message, decoded as in a query and by the row path alone."""
    row_path = _row_path(decoder)
    decoder.decode(messages)
    runs = [(_cpu_us(decoder, messages), _cpu_us(row_path, messages)) for _ in range(RUNS)]
    ours, by_rows = (min(each) for each in zip(*runs, strict=True))
    return ours, by_rows


def _row_path(decoder: Any) -> Decoder:
    """The row path of a decoder, which may stand within others."""
    while not hasattr(decoder, "row_path"):
        decoder = decoder.rows if hasattr(decoder, "rows") else decoder.decoder
    found: Decoder = decoder.row_path
    return found


def _cpu_us(decoder: Decoder, messages: BytesColumn) -> float:
    fresh = BytesColumn(messages.column)  # one keeps its list of messages once it has made it
    begin = time.process_time()
    decoder.decode(fresh)
    return (time.process_time() - begin) / len(messages) * 1e6


if __name__ == "__main__":
    run_dirty()

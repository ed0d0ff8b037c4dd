"""Makes tests/unit/formats/flink/*.json: the messages that Flink itself writes for the rows of `cases`.

Flink reads each row from a file and writes it with its upsert-kafka connector to a topic of a local broker. A plain client then
reads the messages. Run it with `make flink-tables`.
"""

from __future__ import annotations

import json
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql.types import ArrayType

from pyspark_upsert_kafka import LocalKafka
from tools.flink.cases import CASES, Case
from tools.flink.flink import columns_of, run, table

_FOLDER = Path(__file__).parents[2] / "tests" / "unit" / "flink"


def main() -> None:
    """Writes one file for each format."""
    cases = [case for make in CASES.values() for case in make()]
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers = kafka.bootstrap_servers
        run(_script(cases, Path(folder), servers))
        tables = {case.name: _as_json(case, servers) for case in cases}
    for name in CASES:
        texts = [tables[case.name] for case in cases if case.format == name]
        text = ",\n".join(texts)
        (_FOLDER / f"{name}.json").write_text(f"[\n{text}\n]\n", encoding="utf-8")


def _script(cases: list[Case], folder: Path, servers: str) -> Iterator[str]:
    """All tables, then one job for each format."""
    for case in cases:
        yield from _declarations(case, folder, servers)
    for name in CASES:
        inserts = (_insert(case) for case in cases if case.format == name)
        yield f"EXECUTE STATEMENT SET BEGIN {' '.join(inserts)} END"


def _declarations(case: Case, folder: Path, servers: str) -> Iterator[str]:
    source = folder / f"{case.name}.json"
    source.write_text("\n".join(case.rows), encoding="utf-8")
    columns = columns_of(case.columns, 3 if _has_milliseconds(case) else 6)
    file = {"connector": "filesystem", "path": source.as_uri(), "format": "json"}
    topic = {
        "connector": "upsert-kafka",
        "topic": case.name,
        "properties.bootstrap.servers": servers,
        "key.format": case.format,
        "value.format": case.format,
    }
    for option, value in case.options.items():
        topic |= {f"{side}.{case.format}.{option}": value for side in ("key", "value")}
    yield table(f"from {case.name}", columns, file)
    yield table(f"to {case.name}", f"{columns}, PRIMARY KEY (k) NOT ENFORCED", topic)


def _insert(case: Case) -> str:
    return f"INSERT INTO `to {case.name}` SELECT * FROM `from {case.name}`;"


def _has_milliseconds(case: Case) -> bool:
    """Whether Flink's Avro has nothing finer: by the legacy mapping, and in arrays by either."""
    legacy = case.options.get("timestamp_mapping.legacy", "true") == "true"
    return case.format == "avro" and (legacy or isinstance(case.columns["v"].dataType, ArrayType))


def _as_json(case: Case, servers: str) -> str:
    messages = _messages(case.name, servers, len(case.rows))
    head = {"name": case.name, "columns": case.columns.jsonValue(), "options": dict(case.options)}
    rows = [
        {"row": row, "key": _text(key), "value": _text(value)}
        for row, (key, value) in zip(case.rows, messages, strict=True)
    ]
    lines = ",\n".join(_compact(row) for row in rows)
    return f'{_compact(head)[:-1]},"rows":[\n{lines}\n]}}'


def _text(message: bytes) -> str:
    return b64encode(message).decode()


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _messages(topic: str, servers: str, count: int) -> list[tuple[bytes, bytes]]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "tables"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    for _ in range(count):
        message = consumer.poll(30)
        if message is None or message.error():
            raise RuntimeError(f"{topic}: {len(found)} messages of {count}")
        found.append((message.key(), message.value()))
    consumer.close()
    return found


if __name__ == "__main__":
    main()

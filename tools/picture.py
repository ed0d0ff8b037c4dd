"""The picture of ``show --follow``: the program runs on a terminal, and one moment of it becomes an SVG.

``make picture`` writes docs/show.svg. The picture contains exactly what the screen shows at that moment, with its bold parts.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from pyspark_upsert_kafka import LocalKafka
from tools.local_topics import create, producer
from tools.terminal import Terminal

_TOPIC = "pageviews_per_region"
_STATEMENT = """\
CREATE TABLE pageviews_per_region (
  user_region STRING, pv BIGINT, uv BIGINT, PRIMARY KEY (user_region) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'pageviews_per_region',
  'properties.bootstrap.servers' = '{servers}', 'key.format' = 'json', 'value.format' = 'json'
)
"""
_COMMAND = ["show", "--ddl", "pageviews.sql", "--follow"]
_BEFORE = {
    "Africa": (33_014, 547), "Asia": (89_642, 1_499), "Europe": (66_105, 1_102),
    "North America": (57_020, 951), "Oceania": (11_873, 200), "South America": (42_346, 701),
}  # fmt: skip
_AFTER = {"Asia": (91_207, 1_504), "Oceania": (12_166, 203)}
_COLUMNS, _LINES = 66, 13


def main(file: Path) -> None:
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as folder, LocalKafka() as kafka:
        servers = kafka.bootstrap_servers
        create(servers, _TOPIC, partitions=2)
        statement = _STATEMENT.format(servers=servers)
        (Path(folder) / "pageviews.sql").write_text(statement, encoding="utf-8")
        os.environ["PYTHONPATH"] = str(Path.cwd())
        os.chdir(folder)
        _produce(servers, _BEFORE)
        command = [sys.executable, "-m", "pyspark_upsert_kafka", *_COMMAND]
        with Terminal(command, _COLUMNS, _LINES) as terminal:
            terminal.wait_until(lambda: "6 rows at" in terminal.text)
            _produce(servers, _AFTER)
            terminal.wait_until(lambda: "91207" in terminal.text and "12166" in terminal.text)
            drawn = _svg(terminal)
            terminal.process.send_signal(signal.SIGINT)
            terminal.wait()
    file.write_text(drawn, encoding="utf-8")


def _produce(servers: str, counts: Mapping[str, tuple[int, int]]) -> None:
    sender = producer(servers)
    for region, (pv, uv) in counts.items():
        key = {"user_region": region}
        value = json.dumps({**key, "pv": pv, "uv": uv})
        sender.produce(_TOPIC, key=json.dumps(key, separators=(",", ":")), value=value)
    sender.flush()


def _svg(terminal: Terminal) -> str:
    """The screen as it is."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO())
    screen = terminal.screen
    for at in range(len(terminal.text.splitlines())):
        line = Text()
        for place in range(screen.columns):
            character = screen.buffer[at][place]
            styles = [name for name in ("bold", "italics") if getattr(character, name)]
            line.append(character.data, " ".join(styles).replace("italics", "italic"))
        line.rstrip()
        console.print(line)
    title = " ".join(["python -m pyspark_upsert_kafka", *_COMMAND])
    return console.export_svg(title=title, unique_id="show")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())

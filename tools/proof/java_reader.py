"""Topics as Kafka's own Java client reads them: a reader that shares no code with the writer."""

from __future__ import annotations

import base64
import gzip
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from pyspark_upsert_kafka.kafka.local.jars import broker_jars
from tools.verdict import proof_folder

_PROGRAM = Path(__file__).with_name("History.java")


class HistoryError(Exception):
    """A topic could not be read, or has a key in a wrong partition."""


@dataclass(frozen=True)
class Message:
    """A committed message."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class JavaReader:
    """A process of Java that reads whole topics, read_committed. Threads may share it.

    It needs a JDK, because Java compiles the program when it starts. In a proof, what it reads is kept in the proof's folder.

    Args:
        servers: The bootstrap servers.
    """

    def __init__(self, servers: str) -> None:
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{broker_jars()}/*"]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the reader
        self._process = subprocess.Popen(
            [*command, str(_PROGRAM), servers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._lock = threading.Lock()

    def read(self, topic: str, kept_as: str = "") -> list[Message]:
        """All committed messages of a topic; see `messages`."""
        return list(self.messages(topic, kept_as))

    def messages(self, topic: str, kept_as: str = "") -> Iterator[Message]:
        """The committed messages of a topic, which must be read to the end.

        Args:
            topic: The topic.
            kept_as: The name of the file in the proof's folder; empty = it is not kept.

        Raises:
            HistoryError: The process has ended, or a key is not in the partition where Java's partitioner puts it.
        """
        folder = proof_folder("histories") if kept_as else None
        with self._lock, _file(folder, kept_as) as file:
            for line in self._lines(topic):
                file.write(line)
                yield _message(topic, line)

    def _lines(self, topic: str) -> Iterator[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{topic}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line == ".\n":
                return
            yield line
        self._log.seek(0)
        raise HistoryError(f"the reader in Java has ended: {self._log.read()[-2000:].decode()}")

    def __enter__(self) -> JavaReader:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self,
        _: type[BaseException] | None,
        __: BaseException | None,
        ___: TracebackType | None,
    ) -> None:
        self._process.communicate()
        self._log.close()


def _file(folder: Path | None, name: str) -> IO[str]:
    """Where a history is kept."""
    if folder is None:
        return Path(os.devnull).open("w")
    return gzip.open(folder / f"{name}.tsv.gz", "wt")  # type: ignore[return-value]


def _message(topic: str, line: str) -> Message:
    partition, place, offset, _, key, value = line.rstrip("\n").split("\t")
    if place not in (partition, "-1"):
        raise HistoryError(
            f"{topic}: the key of offset {offset} is in partition {partition}, and Java puts it into {place}"
        )
    return Message(int(partition), int(offset), _bytes(key), _bytes(value))


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text)

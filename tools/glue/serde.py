"""Amazon's serializers in a process of Java; its jars, 65 MB, come from Maven Central once."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs

from pyspark_upsert_kafka.kafka.local.jars import broker_jars

_HERE = Path(__file__).parent
_LOCK = _HERE / "serde-1.1.27.lock"


class Serde:
    """Serializers that run.

    Args:
        process: Reads a JSON object a line, and answers with one.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def written(self, **asked: Any) -> bytes:
        """The message of a value: ``kind``, ``name``, ``compression``, and what `Serde.java` takes for that kind."""
        return base64.b64decode(self._ask(asked)["message"])

    def read(self, kind: str, message: bytes) -> str:
        """What a message says: JSON, or for Protobuf the name of the message and its bytes in base64."""
        asked = {"kind": kind, "name": "any", "message": base64.b64encode(message).decode()}
        return str(self._ask(asked)["value"])

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer


@contextmanager
def amazons_serde(endpoint: str, region: str) -> Iterator[Serde]:
    """Amazon's serializers, which ask a registry at this address. A JDK is needed."""
    jars = broker_jars(_LOCK, platformdirs.user_cache_path("pyspark-upsert-kafka") / _LOCK.stem)
    command = ["java", "-cp", f"{jars}/*", str(_HERE / "Serde.java"), endpoint, region]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            yield Serde(process)
        finally:
            process.kill()

"""Debezium's connector for Postgres in its own engine, in a process of Java; its jars come from Maven Central once."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from pyspark_upsert_kafka.kafka.local.jars import broker_jars
from tools.debezium.postgres import Postgres
from tools.recorded_debezium import Message
from tools.recorded_debezium.messages import DATABASE

_HERE = Path(__file__).parent
_LOCK = _HERE / "debezium-3.6.3.Final.lock"


@contextmanager
def engine(
    server: Postgres, folder: Path, *, schemas: bool = True, **more: str
) -> Iterator[Iterator[Message]]:
    """The messages that the connector writes of the table ``public.customers``, as they come.

    Args:
        server: The database.
        folder: For the connector's positions.
        schemas: Whether keys and values carry their schemas.
        more: More of the connector's properties, with ``_`` for each point.
    """
    jars = broker_jars(_LOCK, platformdirs.user_cache_path("pyspark-upsert-kafka") / _LOCK.stem)
    settings = folder / "engine.properties"
    settings.write_text(
        "\n".join(
            f"{key}={value}" for key, value in _settings(server, folder, schemas, more).items()
        )
    )
    command = ["java", "-cp", f"{jars}/*", str(_HERE / "Engine.java"), str(settings)]
    with (
        (folder / "engine.log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        try:
            yield _messages(process)
        finally:
            process.kill()


def _settings(
    server: Postgres, folder: Path, schemas: bool, more: Mapping[str, str]
) -> dict[str, str]:
    return {
        "name": "shop",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(folder / "offsets"),
        "offset.flush.interval.ms": "1000",
        "topic.prefix": "shop",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.password": "none",
        "database.dbname": DATABASE,
        "plugin.name": "pgoutput",
        "table.include.list": "public.customers",
        "provide.transaction.metadata": "true",
        "heartbeat.interval.ms": "1000",
        "key.converter.schemas.enable": str(schemas).lower(),
        "value.converter.schemas.enable": str(schemas).lower(),
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def _messages(process: subprocess.Popen[bytes]) -> Iterator[Message]:
    assert process.stdout is not None
    for line in process.stdout:
        topic, key, value = line.decode().rstrip("\n").split("\t")
        yield Message(topic, _decoded(key) or b"", _decoded(value))


def _decoded(text: str) -> bytes | None:
    return None if text == "-" else base64.b64decode(text)

"""Runs Flink for the programs of this project: SQL in a separate process."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import platformdirs
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.kafka.local.jars import broker_jars

_HERE = Path(__file__).parent
_PYTHON = _HERE.parents[1] / ".venv-flink" / "bin" / "python"
_TOOK = "took-ms"
_LOCK = _HERE / "flink-2.2.1.lock"


def run(
    statements: Iterable[str], parallelism: int = 1, settings: Mapping[str, str] | None = None
) -> list[float]:
    """Runs SQL statements one after another; each job is waited for.

    Args:
        statements: The statements.
        parallelism: Tasks of each step of a job.
        settings: More of Flink's configuration.

    Returns:
        Seconds that each job took within the running Flink.

    Raises:
        RuntimeError: Flink refused one, or is not installed.
    """
    if not _PYTHON.exists():
        raise RuntimeError(f"{_PYTHON} is not there: run 'make .venv-flink/.ready' first")
    jars = sorted(map(str, _jars().glob("*.jar")))
    text = ";\n".join([*statements, ""])
    given = {"parallelism.default": str(parallelism), **(settings or {})}
    arguments = [f"{name}={value}" for name, value in given.items()]
    program = [str(_PYTHON), str(_HERE / "run.py"), *arguments, *jars]
    done = subprocess.run(program, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Flink failed:\n{done.stderr}")
    return [int(line.split()[1]) / 1000 for line in done.stdout.splitlines() if _TOOK in line]


def table(name: str, columns: str, options: Mapping[str, str]) -> str:
    """The statement that declares a table."""
    given = ", ".join(f"'{key}' = '{_escaped(value)}'" for key, value in options.items())
    return f"CREATE TEMPORARY TABLE `{name}` ({columns}) WITH ({given})"


def columns_of(schema: StructType, digits: int = 6) -> str:
    """The columns in Flink's SQL.

    Args:
        schema: The columns.
        digits: Digits of a second's fraction, for timestamps.
    """
    return ", ".join(f"`{field.name}` {_type(field.dataType, digits)}" for field in schema.fields)


def _type(kind: DataType, digits: int) -> str:
    if isinstance(kind, StructType):
        return f"ROW<{columns_of(kind, digits)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_type(kind.elementType, digits)}>"
    if isinstance(kind, MapType):
        return f"MAP<{_type(kind.keyType, digits)}, {_type(kind.valueType, digits)}>"
    if isinstance(kind, TimestampType):
        return f"TIMESTAMP_LTZ({digits})"
    if isinstance(kind, TimestampNTZType):
        return f"TIMESTAMP({digits})"
    return "BYTES" if isinstance(kind, BinaryType) else str(kind.simpleString()).upper()


def _escaped(text: str) -> str:
    return text.replace("'", "''")


def _jars() -> Path:
    """Flink's connector and its Avro format, which PyFlink does not bring."""
    return broker_jars(_LOCK, platformdirs.user_cache_path("pyspark-upsert-kafka") / _LOCK.stem)

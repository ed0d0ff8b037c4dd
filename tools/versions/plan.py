"""What is tried: the tables of docs/versions.md, with what each of their cells runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from tools.versions.brokers import BROKERS, OURS, Broker
from tools.versions.cell_tests import (
    CONFLUENT_KAFKA,
    END_TO_END,
    KAFKA_PYTHON,
    NEEDS_TOPIC_IDS,
    SPARK,
    UNIT,
    ChosenTests,
)
from tools.versions.environments import Environment
from tools.versions.results import Place
from tools.versions.wheels import Wheels

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PYSPARKS = ("4.0", "4.1", "4.2", "4.3")
NEEDED_PYTHON = {"4.3": "3.11"}
"""The oldest Python of a PySpark that needs a newer one than this project does."""
PLATFORMS = {
    "Linux, x86-64": "x86_64-manylinux_2_28",
    "Linux, ARM": "aarch64-manylinux_2_28",
    "macOS, ARM": "aarch64-apple-darwin",
    "macOS, Intel": "x86_64-apple-darwin",
    "Windows": "x86_64-pc-windows-msvc",
}

_WITHOUT_NG = "kafka-python-ng ; python_version < '3'"
NEWEST = Environment("newest", "3.12")
WITH_KAFKA_PYTHON_3 = Environment(
    "kafka-python-3", "3.12", ("kafka-python[crc32c,lz4,snappy,zstd]>=3",), (_WITHOUT_NG,)
)
OLDEST = Environment("oldest", "3.10", is_oldest=True)
NEWEST_PANDAS = Environment("newest-pandas", "3.13", instead=("pandas>=3",))


@dataclass(frozen=True)
class Trial:
    """Tests in an environment, on a broker."""

    environment: Environment
    broker: Broker
    tests: ChosenTests


@dataclass(frozen=True)
class Impossible:
    """What cannot be tried, as a sentence for the page."""

    reason: str


Cell = Trial | Wheels | Impossible


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Args:
        name: Its name in the file of results and on the command line.
        corner: What its rows are.
        cells: What runs, by row and column.
        columns: For a column whose heading shows the version that was seen: the package.
        rows: For rows whose headings show the version that was seen: the package.
    """

    name: str
    corner: str
    cells: Mapping[str, Mapping[str, Cell]]
    columns: Mapping[str, str]
    rows: str = ""


def _of_a_broker(broker: Broker) -> dict[str, Cell]:
    without = () if broker.has_topic_ids else (NEEDS_TOPIC_IDS,)
    kafka_python = KAFKA_PYTHON.without(without)
    return {
        "confluent-kafka": Trial(NEWEST, broker, CONFLUENT_KAFKA.without(without)),
        "kafka-python-ng": Trial(NEWEST, broker, kafka_python),
        "kafka-python": Trial(WITH_KAFKA_PYTHON_3, broker, kafka_python),
        "PySpark": Trial(NEWEST, broker, SPARK),
    }


def _of_a_python(python: str) -> dict[str, Cell]:
    return {f"PySpark {pyspark}": _of_a_pyspark(python, pyspark) for pyspark in PYSPARKS}


def _of_a_pyspark(python: str, pyspark: str) -> Cell:
    needed = NEEDED_PYTHON.get(pyspark)
    if needed and PYTHONS.index(python) < PYTHONS.index(needed):
        return Impossible(f"PySpark {pyspark} needs Python {needed}")
    name, package = f"python-{python}-pyspark-{pyspark}", f"pyspark[connect]=={pyspark}.*"
    return Trial(Environment(name, python, (package,)), OURS, END_TO_END)


def _of_packages(environment: Environment) -> dict[str, Cell]:
    return {
        "end to end": Trial(environment, OURS, END_TO_END),
        "unit tests": Trial(environment, OURS, UNIT),
    }


MANAGED: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "Databricks 17.3 LTS": ("3.12", "4.0.0", ()),
    "Databricks 18 LTS": ("3.12", "4.1.0", ()),
    "Databricks 19": ("3.12", "4.2.0", ()),
    "Amazon EMR 8.0": ("3.11", "4.0.2", ()),
    "AWS Glue 6.0": ("3.13", "4.1.1", ()),
    "Microsoft Fabric 2.0": ("3.13", "4.1.1", ("pyarrow==24.0.0", "pandas==2.3.3", "numpy==2.4.1")),
    "Google Cloud Serverless 3.0": ("3.12", "4.0.1", ()),
    "Google Cloud image 3.0": ("3.12", "4.1.2", ()),
}
"""The Python, the PySpark and, where they are published, the other packages of services: docs/managed-spark.md has their sources."""

_OLDEST_ARROW = "20.0.0"
"""The oldest that the project allows."""


def _of_a_service(python: str, pyspark: str, packages: tuple[str, ...]) -> dict[str, Cell]:
    spark, name = f"pyspark[connect]=={pyspark}", f"managed-{python}-{pyspark}"
    its = Environment(f"{name}-its" if packages else name, python, (spark, *packages))
    old = Environment(f"{name}-old-arrow", python, (spark, f"pyarrow=={_OLDEST_ARROW}"))
    return {
        "its Python and PySpark": Trial(its, OURS, SPARK),
        f"with PyArrow {_OLDEST_ARROW}": Trial(old, OURS, SPARK),
    }


TABLES = (
    Table(
        "brokers",
        "broker",
        {broker.version: _of_a_broker(broker) for broker in BROKERS},
        {
            "confluent-kafka": "confluent-kafka",
            "kafka-python-ng": "kafka-python-ng",
            "kafka-python": "kafka-python",
            "PySpark": "pyspark",
        },
    ),
    Table(
        "python",
        "Python",
        {python: _of_a_python(python) for python in PYTHONS},
        {f"PySpark {pyspark}": "pyspark" for pyspark in PYSPARKS},
        "python",
    ),
    Table(
        "managed",
        "service",
        {name: _of_a_service(*versions) for name, versions in MANAGED.items()},
        {},
    ),
    Table(
        "packages",
        "packages",
        {
            "oldest": _of_packages(OLDEST),
            "newest": _of_packages(NEWEST),
            "newest pandas": _of_packages(NEWEST_PANDAS),
        },
        {},
    ),
    Table(
        "wheels",
        "platform",
        {
            name: {f"Python {python}": Wheels(platform, python) for python in PYTHONS}
            for name, platform in PLATFORMS.items()
        },
        {},
    ),
)


def chosen(wanted: Collection[str]) -> Iterator[tuple[Place, Trial | Wheels]]:
    """The cells to run: those whose table, row or column is named; all if nothing is.

    Args:
        wanted: Names of tables, rows and columns.
    """
    for table in TABLES:
        for row, columns in table.cells.items():
            for column, cell in columns.items():
                is_wanted = not wanted or {table.name, row, column} & set(wanted)
                if is_wanted and not isinstance(cell, Impossible):
                    yield (table.name, row, column), cell

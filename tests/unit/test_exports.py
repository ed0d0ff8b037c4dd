"""What users import, and what importing costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyspark_upsert_kafka
from pyspark_upsert_kafka.version import current_version

PUBLIC = [
    "BrokerError",
    "CheckpointError",
    "DataLossError",
    "DecodeError",
    "DefaultSource",
    "DeliveryError",
    "EncodeError",
    "LocalAcl",
    "LocalCertificates",
    "LocalKafka",
    "LocalSecurity",
    "OptionError",
    "ProgressListener",
    "RetriableBrokerError",
    "RetriableDeliveryError",
    "SchemaChangedError",
    "SchemaError",
    "TableChanges",
    "UnknownTopicError",
    "UpsertKafkaDataSource",
    "UpsertKafkaError",
    "last_changes",
    "merge_sink",
    "normalize_changelog",
    "read_changes",
    "read_table",
    "run_sql",
    "upsert_sink",
    "watermark_of",
    "why_it_ended",
]


def test_the_public_names():
    """A name more or less is a change that users see."""
    assert sorted(pyspark_upsert_kafka.__all__) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_there_and_says_what_it_is(name):
    """Each name leads to something with a docstring."""
    assert getattr(pyspark_upsert_kafka, name).__doc__


@pytest.mark.parametrize("name", PUBLIC)
def test_what_a_public_name_says_points_to_pages_by_their_address(name):
    """An installed package has no folder ``docs`` beside it."""
    named = getattr(pyspark_upsert_kafka, name)
    members = vars(named).values() if isinstance(named, type) else ()
    texts = [member.__doc__ or "" for member in (named, *members)]

    assert not [text for text in texts if re.search(r"(?<!/main/)docs/", text)]


def test_the_version_is_looked_up_when_asked_for():
    """It is written nowhere in the package: a number that is read at import would be old after a commit."""
    assert pyspark_upsert_kafka.__version__ == current_version()


def test_public_names_are_all_that_is_offered():
    """Whatever class of ours the package shows is public, and so is what it loads later."""
    shown = {
        name
        for name, value in vars(pyspark_upsert_kafka).items()
        if isinstance(value, type) and value.__module__.startswith("pyspark_upsert_kafka")
    }

    assert shown | pyspark_upsert_kafka._LAZY.keys() == {*PUBLIC}


def test_editors_know_what_is_loaded_later():
    """Names that are loaded when asked for are imported for type checkers, from the same place."""
    tree = ast.parse(Path(pyspark_upsert_kafka.__file__).read_text(encoding="utf-8"))
    typing_only = next(node for node in tree.body if isinstance(node, ast.If))

    assert {
        alias.name: statement.module
        for statement in typing_only.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    } == pyspark_upsert_kafka._LAZY


def test_type_checkers_know_which_names_are_not_there():
    """They take any name for one of a module that has ``__getattr__``, so they must not see it."""
    root = Path(pyspark_upsert_kafka.__file__).parent
    seen = [
        file
        for file in root.rglob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"
    ]

    assert seen == []


def test_a_name_that_is_not_there():
    """Asking for anything else is the usual AttributeError."""
    with pytest.raises(
        AttributeError, match=r"^module 'pyspark_upsert_kafka' has no attribute 'sink_'$"
    ):
        _ = pyspark_upsert_kafka.sink_


def test_spark_finds_the_source():
    """Spark looks for `DefaultSource` in every package whose name begins with `pyspark_`."""
    assert pyspark_upsert_kafka.DefaultSource.name() == "upsert-kafka"


NEW_MODULES = """
import sys
import pyspark.sql.datasource
before = set(sys.modules)
import pyspark_upsert_kafka
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
print(*sorted(name for name in sys.modules if name.startswith("pyspark_upsert_kafka.")))
"""


def test_importing_the_package_loads_next_to_nothing():
    """Spark imports it in every process of every query: no client, no Arrow, no polars, no numpy."""
    done = subprocess.run(
        [sys.executable, "-c", NEW_MODULES], capture_output=True, text=True, check=True
    )
    others, ours = (line.split() for line in done.stdout.splitlines())

    assert {*others} - sys.stdlib_module_names == {"pyspark_upsert_kafka"}
    assert ours == [
        "pyspark_upsert_kafka.connector",
        "pyspark_upsert_kafka.connector.datasource",
        "pyspark_upsert_kafka.connector.interpreter",
        "pyspark_upsert_kafka.core",
        "pyspark_upsert_kafka.core.errors",
    ]

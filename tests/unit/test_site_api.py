"""The pages of the Python API: every public name, with an example, as docstrings and signatures have it."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import pytest

import pyspark_upsert_kafka
from tools.site.api import ALIASES, TOPICS, Api, examples, has_example, over_lines, with_blocks

ROOT = Path(__file__).parents[2]
NAMES = sorted({*pyspark_upsert_kafka.__all__} - {*ALIASES})


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The pages."""
    return Api.of(ROOT).pages()


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name: str) -> None:
    """A program, which tests/spark/test_api_examples.py runs, or a session of ``>>>``, which test_docstrings.py runs."""
    assert has_example(inspect.getdoc(getattr(pyspark_upsert_kafka, name)) or "")


@pytest.mark.parametrize("name", NAMES)
def test_a_session_works_where_it_is_pasted(name: str) -> None:
    """It imports what it uses: it runs where nothing is defined."""
    docstring = inspect.getdoc(getattr(pyspark_upsert_kafka, name)) or ""
    session = doctest.DocTestParser().get_doctest(docstring, {}, name, None, None)

    assert doctest.DocTestRunner().run(session).failed == 0


def test_every_public_name_is_described_once(pages: dict[str, str]) -> None:
    """Whatever can be imported from the package has its heading on one page."""
    headings = [
        line.removeprefix("## ")
        for text in pages.values()
        for line in text.splitlines()
        if line.startswith("## ")
    ]

    assert sorted(headings) == NAMES


def test_a_function_is_described(pages: dict[str, str]) -> None:
    """Its signature, arguments, what it returns and raises, and its example."""
    described = pages["api/changes.md"].partition("## last_changes\n")[2]

    assert "last_changes(df: DataFrame, keys: Sequence[str] | str) -> DataFrame" in described
    assert "\n- `keys`: The columns of the key.\n" in described
    assert "**Returns**\n\nThe same columns, with at most one row per key.\n" in described
    assert (
        "**Raises**\n\n- [`SchemaError`](errors.md#schemaerror): A column is missing" in described
    )
    assert "**Example**\n\n```python\nfrom pyspark.sql import DataFrame\n" in described


def test_a_class_is_described_with_what_users_call(pages: dict[str, str]) -> None:
    """Methods and properties of our own classes; of a listener the properties, for Spark calls its methods."""
    assert "### LocalKafka.bootstrap_servers\n" in pages["api/testing.md"]
    assert "### LocalKafka.stop\n" in pages["api/testing.md"]
    assert "### ProgressListener.batches\n" in pages["api/monitoring.md"]
    assert "onQueryProgress" not in pages["api/monitoring.md"]


def test_an_alias_is_named(pages: dict[str, str]) -> None:
    """Spark's name for the data source is not a second description."""
    assert "`DefaultSource`" in pages["api/reading.md"]


def test_pages_are_not_empty(pages: dict[str, str]) -> None:
    """Each topic has its page, and says first what it is about."""
    assert len(pages) == len(TOPICS)
    for text in pages.values():
        assert text.split("\n\n")[1].startswith("This page describes ")
        assert ("local-kafka" in text) == ("NewTopic" in text)


def test_a_page_begins_with_the_lines_that_make_its_topics(pages: dict[str, str]) -> None:
    """Every topic of its examples, and a session; a page without topics has no such lines."""
    assert (
        'NewTopic(name, 1, config=compacted) for name in ["counts", "users"]]'
        in pages["api/writing.md"]
    )
    assert 'for name in ["users", "users_per_region"]]' in pages["api/sql.md"]
    assert 'for name in ["pageviews_per_region", "users", "views"]]' in pages["api/reading.md"]
    assert "spark = SparkSession.builder.getOrCreate()" in pages["api/reading.md"]
    assert "NewTopic" not in pages["api/errors.md"]
    assert "`spark` is a session" in pages["api/monitoring.md"]


EXAMPLE = """\
Does something.

Example::

    a = 1

    b = 2

Afterwards.

>>> 1 + 1
2
"""


def test_examples_become_blocks_of_code() -> None:
    """A program as Python, a session as one, and the text around them stays."""
    assert with_blocks(EXAMPLE) == (
        "Does something.\n\n"
        "**Example**\n\n```python\na = 1\n\nb = 2\n```\n\n"
        "Afterwards.\n\n"
        "```pycon\n>>> 1 + 1\n2\n```"
    )


def test_programs_are_found() -> None:
    """Sessions are left to doctest."""
    assert examples(EXAMPLE) == ["a = 1\n\nb = 2\n"]
    assert examples("Example::\n\n    >>> 1\n    1\n") == []
    assert not has_example("Nothing to see.")


@pytest.mark.parametrize(
    ("signature", "shown"),
    [
        ("f(a: int) -> None", "f(a: int) -> None"),
        (
            f"f(a: dict[str, int], *, {'b' * 60}: str = 'x, y') -> list[int]",
            f"f(\n    a: dict[str, int],\n    *,\n    {'b' * 60}: str = 'x, y',\n) -> list[int]",
        ),
    ],
)
def test_a_long_signature_has_a_line_for_each_parameter(signature: str, shown: str) -> None:
    """A comma in brackets or in a text does not end a parameter."""
    assert over_lines(signature) == shown


def test_a_session_alone_is_an_example_too() -> None:
    """It has the heading that a program has."""
    assert with_blocks(">>> 1 + 1\n2") == "**Example**\n\n```pycon\n>>> 1 + 1\n2\n```"

"""How `merge_sink` reads the name of a table."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.lakehouse.table_name import table_name


@pytest.mark.parametrize(
    ("text", "sql", "is_path"),
    [
        ("users", "`users`", False),
        (" lake.db.users ", "`lake`.`db`.`users`", False),
        ("lake.`my db`.`a.b`", "`lake`.`my db`.`a.b`", False),
        ("`a``b`.c-d", "`a``b`.`c-d`", False),
        ("lake.db.`a/b`", "`lake`.`db`.`a/b`", False),
        ("/tmp/lake/users", "`delta`.`/tmp/lake/users`", True),
        ("s3a://lake/us ers", "`delta`.`s3a://lake/us ers`", True),
        ("file:/tmp/x", "`delta`.`file:/tmp/x`", True),
        ("delta.`/tmp/x`", "`delta`.`/tmp/x`", True),
        ("delta.users", "`delta`.`users`", False),
    ],
)
def test_names_and_paths(text: str, sql: str, is_path: bool) -> None:
    """A slash outside backticks makes a path; parts of names may hold anything in backticks."""
    name = table_name(text)

    assert (name.sql, name.is_path) == (sql, is_path)


def test_how_it_is_shown() -> None:
    """In messages a table has the name that users know."""
    assert str(table_name("/tmp/x")) == "/tmp/x"
    assert str(table_name("lake.`a b`")) == "lake.a b"


@pytest.mark.parametrize("text", ["", " ", None, 7, "a..b", "a.", ".a", "a b", "`a", "a`b`", "``"])
def test_what_is_no_table(text: str) -> None:
    """It is told at once, with what was given."""
    with pytest.raises(OptionError, match="merge_sink: table is"):
        table_name(text)


@pytest.mark.parametrize("text", ["lake/users", "./users", "delta.`lake/users`"])
def test_a_path_is_absolute(text: str) -> None:
    """Delta Lake takes a relative one for the name of a table."""
    with pytest.raises(OptionError, match=r"the path of a table is absolute.*lake/users|absolute"):
        table_name(text)

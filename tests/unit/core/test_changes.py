"""Kinds of change and their spellings."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.changes import SPELLINGS, Change, change_named, unknown_kind

NAMED = {
    "insert": Change.UPSERT,
    "update_postimage": Change.UPSERT,
    "upsert": Change.UPSERT,
    "+I": Change.UPSERT,
    "+U": Change.UPSERT,
    "delete": Change.DELETE,
    "-D": Change.DELETE,
    "update_preimage": Change.UPDATE_PREIMAGE,
    "-U": Change.UPDATE_PREIMAGE,
}


@pytest.mark.parametrize(("spelling", "change"), NAMED.items())
@pytest.mark.parametrize("case", [str, str.upper, str.lower, str.title])
def test_each_spelling_means_one_change(case, spelling, change):
    """Each spelling means its change in any case."""
    assert change_named(case(spelling)) is change


@pytest.mark.parametrize("spelling", [None, "", "update", "I", "+D", " upsert", "deleted", "-"])
def test_anything_else_means_nothing(spelling):
    """NULL and every other text is no change."""
    assert change_named(spelling) is None


@pytest.mark.parametrize(
    ("spelling", "said"),
    [
        ("delet", "'delet' is not a kind of change (did you mean 'delete'?)"),
        ("UPDATE_PREIMAGES", "'UPDATE_PREIMAGES' is not a kind of change (did you mean 'update_preimage'?)"),
        (" insert", "' insert' is not a kind of change (did you mean 'insert'?)"),
        ("gone", "'gone' is not a kind of change"),
        (None, "NULL is not a kind of change"),
    ],
)  # fmt: skip
def test_a_misspelt_kind_is_told_with_the_nearest(spelling, said):
    """The kinds that there are stand behind it."""
    assert unknown_kind(spelling) == f"{said}; known kinds: {SPELLINGS}"


def test_the_list_for_people_is_the_whole_list():
    """What an error lists is what is understood."""
    assert SPELLINGS.split(", ") == list(NAMED)


def test_an_upsert_is_the_plain_case():
    """Whole columns of changes are asked by `any` whether there is anything but upserts."""
    assert Change.UPSERT == 0

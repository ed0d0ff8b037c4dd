"""The table of the values of `error-handling.mode`."""

from __future__ import annotations

from typing import get_args

from pyspark_upsert_kafka.core.error_modes import ERROR_MODES, ErrorMode, modes_that


def test_the_table_has_each_mode():
    """Whoever adds a mode says what becomes of a message."""
    assert tuple(ERROR_MODES) == get_args(ErrorMode)


def test_modes_as_a_part_of_a_sentence():
    """One name stands alone."""
    assert modes_that("column") == "'column'"
    assert modes_that("fail", "skip") == "'fail', 'ignore' or 'log'"

"""Closing after an error, which stays the error that is raised."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.closing import closing, undone_on_failure


class Thing:
    """Counts how often it is closed, and may fail then."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure, self.closed = failure, 0

    def close(self) -> None:
        """Takes note of it."""
        self.closed += 1
        if self.failure is not None:
            raise self.failure


@pytest.mark.parametrize("first", [ValueError("first"), KeyboardInterrupt("first")])
def test_an_error_while_closing_never_replaces_the_first_one(caplog, first):
    """It is logged, and what was open is closed once."""
    thing = Thing(OSError("second"))

    with pytest.raises(type(first), match="first"), closing(thing):
        raise first

    assert thing.closed == 1
    assert "second" in caplog.text


def test_an_error_while_closing_is_raised_where_it_is_the_only_one():
    """Nobody would hear of it otherwise."""
    thing = Thing(OSError("second"))

    with pytest.raises(OSError, match="second"), closing(thing):
        pass

    assert thing.closed == 1


def test_only_what_has_failed_is_undone():
    """Else it is there to be used."""
    thing = Thing()
    with undone_on_failure(thing.close):
        pass
    assert thing.closed == 0

    with pytest.raises(ValueError, match="first"), undone_on_failure(thing.close):
        raise ValueError("first")
    assert thing.closed == 1

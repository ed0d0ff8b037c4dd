"""When the errors that a client reports are fatal: a table of what happened when."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.kafka.failures import FATAL_AFTER_S, ClientErrors

REFUSED, LOST, THROUGH, NEW_TASK = "refused", "lost", "through", "new task"


@pytest.mark.parametrize(
    ("events", "is_fatal"),
    [
        ([], False),
        ([(0, REFUSED)], False),  # once proves nothing, however long ago
        ([(0, REFUSED), (FATAL_AFTER_S - 0.1, REFUSED)], False),
        ([(0, REFUSED), (FATAL_AFTER_S, REFUSED)], True),
        ([(0, REFUSED), (1, REFUSED), (FATAL_AFTER_S, REFUSED), (6, LOST)], True),
        ([(0, LOST), (60, LOST)], False),  # a lost connection comes back
        ([(0, LOST), (60, REFUSED)], False),
        ([(0, REFUSED), (1, LOST), (FATAL_AFTER_S, REFUSED)], True),
        ([(0, REFUSED), (1, THROUGH), (6, REFUSED)], False),  # another broker takes messages
        ([(0, REFUSED), (6, REFUSED), (7, THROUGH)], False),
        ([(0, REFUSED), (1, THROUGH), (2, REFUSED), (2 + FATAL_AFTER_S, REFUSED)], True),
        ([(0, REFUSED), (1, NEW_TASK), (6, REFUSED)], False),
        ([(0, REFUSED), (6, REFUSED), (7, NEW_TASK)], False),
        ([(0, REFUSED), (1, NEW_TASK), (2, REFUSED), (2 + FATAL_AFTER_S, REFUSED)], True),
    ],
)
def test_a_refusal_is_fatal_when_it_goes_on_and_nothing_gets_through(events, is_fatal):
    """One refused login or certificate proves nothing; nor does what was before the task."""
    now = [0.0]
    errors = ClientErrors(clock=lambda: now[0])
    for second, event in events:
        now[0] = second
        if event == THROUGH:
            errors.note_progress()
        elif event == NEW_TASK:
            errors.clear()
        else:
            errors.add(event, security=event == REFUSED)

    assert errors.fatal_error == (REFUSED if is_fatal else None)


@pytest.mark.parametrize(
    ("seconds", "is_fatal"),
    [
        ((0, FATAL_AFTER_S), False),  # a broker that restarts hangs up too
        ((0, 1, 2, 3), False),
        ((0, 1, 2, FATAL_AFTER_S), True),
    ],
)
def test_what_may_have_another_cause_must_come_often(seconds, is_fatal):
    """Who wants another security protocol just hangs up, again and again."""
    now = [0.0]
    errors = ClientErrors(clock=lambda: now[0])
    for now[0] in seconds:
        errors.add(LOST, security=True, certain=False)
    assert errors.fatal_error == (LOST if is_fatal else None)
    errors.add(REFUSED, security=True)
    assert errors.fatal_error == (REFUSED if FATAL_AFTER_S in seconds else None)


def test_errors_are_described():
    """A refusal explains the lost connections that follow from it; a new task has no errors."""
    errors = ClientErrors()
    assert errors.describe() == ""

    errors.add(LOST)
    assert errors.describe() == " Last seen: lost"

    errors.add(REFUSED, security=True)
    errors.add(LOST)
    assert errors.describe().startswith(" Last seen: refused. Check 'properties.security.protocol'")

    errors.clear()
    assert errors.describe() == ""


def test_an_error_that_the_sentence_has_said_is_not_repeated():
    """What to check is said all the same."""
    errors = ClientErrors()
    errors.add(LOST)
    assert errors.describe(LOST) == ""

    errors.add(REFUSED, security=True)
    assert errors.describe(REFUSED).startswith(" Check 'properties.security.protocol'")


def test_what_says_less_does_not_hide_what_says_more():
    """The library tells its log that a handshake failed, after the reason why was known; time goes on."""
    now = [0.0]
    errors = ClientErrors(clock=lambda: now[0])
    errors.add("certificate has expired", security=True)
    now[0] = FATAL_AFTER_S
    errors.add("handshake failed", security=True, vague=True)

    assert errors.fatal_error == "certificate has expired"
    errors.clear()
    errors.add("handshake failed", security=True, vague=True)
    assert "handshake failed" in errors.describe()

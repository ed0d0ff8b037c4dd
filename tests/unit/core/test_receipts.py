"""Receipts: what a plan and a task are told by them: write, pass over, or refuse."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.errors import CheckpointError, OptionError
from pyspark_upsert_kafka.core.receipts import (
    Call,
    GroupOffset,
    Preparation,
    check_unwritten,
    is_written,
    old_receipts,
    preparation,
)

OTHER = "8d0cf6a1-0000-4000-8000-000000000000"
QUERY = "7d0cf6a1-0000-4000-8000-000000000000"
CALL = Call("sink", QUERY, 0, 12, 4, ("t",), "1f3b", "90ab")


def receipt(batch: int, tasks: int = 4, **more: object) -> GroupOffset:
    """The receipt of a batch."""
    return replace(CALL, batch=batch, tasks=tasks, **more).receipt


def test_ids_are_those_that_administrators_are_told():
    """``<prefix>-<query>-<call>-<task>``, and ``plan`` for the driver."""
    assert CALL.transactional_id(3) == f"sink-{QUERY}-0-3"
    assert CALL.driver_id == f"sink-{QUERY}-0-plan"


@pytest.mark.parametrize(
    "other",
    [{"prefix": "sink2"}, {"query": QUERY.replace("7", "8")}, {"number": 1}],
)
def test_other_sinks_queries_and_calls_share_no_id(other):
    """Whatever differs in prefix, query or call has ids of its own."""
    theirs = replace(CALL, **other)

    ours = {CALL.driver_id, *map(CALL.transactional_id, range(20))}
    assert not ours & {theirs.driver_id, *map(theirs.transactional_id, range(20))}


def test_a_receipt_says_what_was_written():
    """Offset = batch + 1, on partition 0 of the first topic, with the number of tasks, call and topics."""
    call = replace(CALL, number=2, topics=("b", "a"))

    assert call.receipt == GroupOffset(
        "a", 0, 13, '{"tasks": 4, "call": 2, "content": "1f3b", "topic": "a;b", "sink": "90ab"}'
    )


def test_a_plan_says_when_it_was_made_too():
    """In seconds since the epoch; it is the receipt of the call all the same."""
    plan = CALL.driver_receipt(1_700_000_000.9)

    assert json.loads(plan.metadata) == {
        **json.loads(CALL.receipt.metadata),
        "begun": 1_700_000_000,
    }
    assert preparation(CALL, plan) == Preparation(commits_receipt=False, begun=1_700_000_000)
    assert is_written(CALL, plan)


def test_the_order_of_topics_makes_no_difference():
    """A list of topics in another order names the same sink."""
    one, other = (replace(CALL, topics=names) for names in (("a", "b"), ("b", "a")))

    assert one.receipt == other.receipt


def test_a_receipt_of_many_topics_is_as_short_as_brokers_take_it():
    """Brokers refuse more than 4096 bytes of metadata; which topics they are is still distinguished."""
    names = tuple(f"{'t' * 240}{n}" for n in range(100))
    call, other = replace(CALL, topics=names), replace(CALL, topics=names[:-1])

    assert len(call.receipt.metadata) < 4096
    assert is_written(call, call.receipt)
    with pytest.raises(OptionError):
        is_written(call, other.receipt)


@pytest.mark.parametrize(("length", "is_shown"), [(1000, True), (1001, False)])
def test_topics_are_named_while_their_names_are_short(length, is_shown):
    """A digest stands for longer ones."""
    call = replace(CALL, topics=("a", "t" * (length - 2)))

    assert (call.topics_text == f"a;{'t' * (length - 2)}") is is_shown


@pytest.mark.parametrize(
    ("found", "written"),
    [
        (None, False),
        (receipt(11), False),
        (receipt(11, tasks=9), False),
        (receipt(0, tasks=1), False),
        (receipt(12), True),
    ],
)
def test_a_task_writes_unless_its_receipt_is_of_the_same_batch(found, written):
    """No receipt or an older one: write. The same batch: pass over."""
    assert is_written(CALL, found) is written


@pytest.mark.parametrize(
    ("found", "todo"),
    [
        (receipt(11), Preparation(commits_receipt=True)),
        (receipt(3), Preparation(commits_receipt=True)),
        (receipt(11, tasks=2), Preparation(commits_receipt=True)),
        (receipt(11, tasks=7), Preparation(commits_receipt=True, fenced=range(4, 7))),
        (receipt(12), Preparation(commits_receipt=False)),
        (receipt(12, sink="another"), Preparation(commits_receipt=True, unwritten=range(4))),
    ],
)
def test_a_new_batch_is_planned_and_fences_off_tasks_that_it_does_not_have(found, todo):
    """A plan is committed once; where the batch before had more tasks, the others are fenced off first."""
    assert preparation(CALL, found) == todo


def test_what_another_sink_has_written_is_not_begun_anew():
    """A task's receipt of the batch, or the plan of a later call, says that it may have written rows."""
    said = ["Call 0", "'sink'", "batch 12", "other options or other columns", "left out"]
    for check in (is_written, check_unwritten):
        with pytest.raises(OptionError) as refused:
            check(CALL, receipt(12, sink="another"))
        assert all(part in str(refused.value) for part in said)
    for found in (None, receipt(11, sink="another")):
        check_unwritten(CALL, found)


ALONE = replace(CALL, options="0p7s")
"""A call of a sink whose options are known for themselves."""


@pytest.mark.parametrize(
    ("call", "begun_by", "may_finish"),
    [
        (ALONE, {"sink": "narrow"}, True),
        (ALONE, {"sink": "another", "options": "0ther"}, False),
        (ALONE, {"sink": "of a version before", "options": ""}, False),
        (replace(ALONE, number=1), {"sink": "narrow", "number": 1}, False),
        (replace(ALONE, batch=0), {"sink": "narrow", "batch": 0}, False),
    ],
)
def test_a_batch_that_was_begun_with_other_columns_may_be_finished(call, begun_by, may_finish):
    """If the options are the same, and no call of the batch was before it; of batch 0 nobody knows which calls it was to have."""
    found = replace(call, **begun_by).receipt

    assert preparation(call, found).may_finish is may_finish


def test_what_is_finished_takes_all_columns_of_its_options():
    """Tasks that have written with other columns are done; the number of tasks and the rows count as ever."""
    finishing, narrow = replace(ALONE, finishes=True), replace(ALONE, sink="narrow")

    assert is_written(finishing, narrow.receipt)
    assert is_written(finishing, finishing.receipt)
    assert not is_written(finishing, replace(narrow, batch=11).receipt)
    for other in ({"options": "0ther"}, {"tasks": 3}):
        with pytest.raises(OptionError):
            is_written(finishing, replace(narrow, **other).receipt)
    with pytest.raises(CheckpointError):
        is_written(finishing, replace(narrow, content="77").receipt)


def test_no_receipt_is_no_question_for_the_first_batch_only():
    """A later batch without any receipt may be one whose receipts are gone: that is told, with what follows."""
    assert preparation(replace(CALL, batch=0), None) == Preparation(commits_receipt=True)

    todo = preparation(CALL, None)

    assert todo.commits_receipt
    (warning,) = todo.warnings
    for part in ("batch 12", "'t'", "'sink'", QUERY, "'offsets.retention.minutes'"):
        assert part in warning


@pytest.mark.parametrize("decide", [preparation, is_written])
@pytest.mark.parametrize(
    ("found", "error", "parts"),
    [
        (receipt(13), CheckpointError, ["Batch 13", "batch 12", "reset to an earlier state"]),
        (receipt(99, tasks=9), CheckpointError, ["Batch 99", "batch 12"]),
        (
            receipt(12, tasks=8),
            OptionError,
            ["'sink.parallelism' = '8'", "'4'", "to '8' until this batch is done"],
        ),
        (
            receipt(12, content="77"),
            CheckpointError,
            ["Batch 12", "another one", "reset to an earlier state", "'primary-key'"],
        ),
        (receipt(12, content="77", tasks=8), CheckpointError, ["another one"]),
        (receipt(12, topics=("u",)), OptionError, ["topic 'u' before", "'t' now"]),
        (receipt(3, topics=("t", "u")), OptionError, ["'t;u'", "prefix of its own"]),
        (
            GroupOffset("t", 0, 13, ""),
            CheckpointError,
            ["no receipt of this sink", "another prefix"],
        ),
        (GroupOffset("t", 0, 13, "[]"), CheckpointError, ["no receipt of this sink"]),
        (
            GroupOffset("t", 0, 13, '{"tasks": null, "content": "", "topic": 1}'),
            CheckpointError,
            ["no receipt"],
        ),
    ],
)
def test_what_does_not_go_on_from_the_receipt_is_refused(decide, found, error, parts):
    """A checkpoint set back, another number of tasks for the same batch, other topics, a receipt of others."""
    with pytest.raises(error) as refused:
        decide(CALL, found)

    for part in parts:
        assert part in str(refused.value)


@given(
    st.integers(0, 2**40), st.integers(1, 1000), st.integers(0, 9), st.sets(st.sampled_from("abc"), min_size=1)
)  # fmt: skip
def test_a_call_knows_its_own_receipt(batch, tasks, number, topics):
    """What a call commits says to the same call that it is written, and to the next batch that it is not."""
    call = Call("p", QUERY, number, batch, tasks, tuple(topics), "1f3b")

    assert is_written(call, call.receipt)
    assert not preparation(call, call.receipt).commits_receipt
    assert not is_written(replace(call, batch=batch + 1), call.receipt)


def test_a_receipt_of_an_earlier_version_is_read():
    """It says neither which sink wrote nor when, and is taken as that of the same sink."""
    found = GroupOffset("t", 0, 13, '{"tasks": 4, "call": 0, "content": "1f3b", "topic": "t"}')

    assert is_written(CALL, found)
    assert preparation(CALL, found) == Preparation(commits_receipt=False)


def test_a_later_batch_may_be_written_by_a_changed_sink():
    """Between batches options and columns are free: everything before is written."""
    found = receipt(11, sink="another")

    assert preparation(CALL, found).commits_receipt
    assert not is_written(CALL, found)


@pytest.mark.parametrize("found", [None, receipt(11)])
def test_a_call_that_nothing_tells_from_another_is_not_begun(found):
    """Its number alone would: two such calls that change places would pass over the rows of one another."""
    with pytest.raises(OptionError) as refused:
        preparation(CALL, found, may_begin=False)

    for part in ("Call 0", "batch 12", "other rows", "a prefix of its own", "Nothing of this call"):
        assert part in str(refused.value)


def test_a_call_that_an_earlier_version_has_begun_is_finished():
    """Another prefix would write again what is written."""
    assert not preparation(CALL, receipt(12, sink=""), may_begin=False).commits_receipt


@pytest.mark.parametrize(
    ("group", "query"),
    [
        (f"sink-{OTHER}-0-plan", OTHER),
        (f"sink-{OTHER}-17-plan", OTHER),
        (f"sink-{QUERY}-0-plan", None),
        (f"sink-{OTHER}-0-3", None),
        (f"sink-of-mine-{OTHER}-0-plan", None),
        ("sink-plan", None),
    ],
)
def test_plans_of_other_queries_are_known_by_their_groups(group, query):
    """The same prefix, another query, any call; groups of longer prefixes are others."""
    assert CALL.other_query(group) == query


@pytest.mark.parametrize(
    ("age_s", "retention_s", "is_told"),
    [(3600, 7 * 86400, False), (6.2 * 86400, None, False), (6.4 * 86400, None, True),
     (7 * 86400 * 0.9, None, False), (7 * 86400 * 0.9 + 0.5, None, True),
     (6.4 * 86400, 14 * 86400, False), (54, 60, False), (55, 60, True), (8 * 86400, 7 * 86400, True)],
)  # fmt: skip
def test_what_brokers_may_have_forgotten_is_told(age_s, retention_s, is_told):
    """A task's receipt may go before the plan's, whose age says so before the first of them can be gone."""
    warnings = old_receipts(CALL, age_s, retention_s)

    assert bool(warnings) is is_told
    for warning in warnings:
        assert "Batch 12" in warning
        assert "written again" in warning


def test_later_versions_may_say_more_in_a_receipt():
    """What is not known in a receipt's metadata is skipped."""
    more = json.dumps({**json.loads(CALL.receipt.metadata), "of a later version": 1})

    assert is_written(CALL, replace(CALL.receipt, metadata=more))

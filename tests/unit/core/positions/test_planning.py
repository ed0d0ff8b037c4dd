"""Who reads what: pure functions from positions to positions and ranges."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import (
    Range,
    StreamOffset,
    TopicPartition,
    ranges_between,
)
from pyspark_upsert_kafka.core.positions.planning import (
    advanced,
    backlog,
    by_share,
    known_ids,
    rate_limited,
    shared,
    shared_by_all,
    split,
    spread,
    tasks_to_share,
    with_new_partitions,
)

T0, T1, T2 = (TopicPartition("t", partition) for partition in range(3))
U0 = TopicPartition("u", 0)


def bounds(earliest, latest, high=None):
    """Bounds of a partition; without open transactions the two ends are one."""
    return Bounds(earliest, latest, latest if high is None else high)


def view(ids=None, **by_partition):
    """What the broker has of the topic t: ``view(t0=bounds(0, 9))``."""
    partitions = {
        TopicPartition(name[0], int(name[1:])): each for name, each in by_partition.items()
    }
    return ClusterView({tp.topic: "1" for tp in partitions} if ids is None else ids, partitions)


def offset(positions, **more):
    """An offset of a query that knows its topics by the id 1."""
    ids = {tp.topic: "1" for tp in positions}
    return StreamOffset(positions, **{"topic_ids": ids, **more})


# New partitions


def test_a_new_partition_begins_at_its_earliest_offset():
    """Known partitions stay where they are, with what they begin in this batch."""
    known = offset({T0: 5}, begins={T0: 3}, stop=None)

    assert with_new_partitions(known, view(t0=bounds(0, 9), t1=bounds(2, 4), u0=bounds(0, 0))) == (
        replace(known, positions={T0: 5, T1: 2, U0: 0}, begins={T0: 3, T1: 2, U0: 0})
    )


# How far the next batch reads


@pytest.mark.parametrize(
    ("start", "there", "limits", "ends"),
    [
        (offset({T0: 5, T1: 0}), view(t0=bounds(0, 9), t1=bounds(0, 0)), {}, {T0: 9, T1: 0}),
        (offset({T0: 5}), view(t0=bounds(0, 3, high=9)), {}, {T0: 5}),
        (offset({T0: 5, T1: 1}), view(t0=bounds(0, 9)), {}, {T0: 9, T1: 1}),
        (offset({T0: 5}), view(t0=bounds(0, 9)), {"target": {T0: 7}}, {T0: 7}),
        (offset({T0: 5}), view(t0=bounds(0, 6)), {"target": {T0: 7}}, {T0: 6}),
        (offset({T0: 5}), view(t0=bounds(0, 9)), {"target": {T0: 2}}, {T0: 5}),
        (
            offset({T0: 5, T1: 0}),
            view(t0=bounds(0, 9), t1=bounds(0, 4)),
            {"target": {T0: 7}},
            {T0: 7, T1: 0},
        ),
        (offset({T0: 5}, stop={T0: 7}), view(t0=bounds(0, 9)), {}, {T0: 7}),
        (offset({T0: 5}, stop={T0: 3}), view(t0=bounds(0, 9)), {}, {T0: 5}),
        (offset({T0: 5}, stop={}), view(t0=bounds(0, 9)), {}, {T0: 5}),
        (
            offset({T0: 5}, stop={T0: 7}),
            view(t0=bounds(0, 9)),
            {"target": {T0: 6}},
            {T0: 6},
        ),
        (
            offset({T0: 0, T1: 0}),
            view(t0=bounds(0, 100), t1=bounds(0, 1)),
            {"max_offsets": 10},
            {T0: 9, T1: 1},
        ),
        (
            offset({T0: 0, T1: 0}),
            view(t0=bounds(0, 100), t1=bounds(0, 100)),
            {"max_offsets": 10, "target": {T0: 2, T1: 100}},
            {T0: 1, T1: 9},
        ),
    ],
    ids=[
        "up to the latest offset",
        "an open transaction never moves it back",
        "a partition that the broker does not name stays",
        "availableNow stops at the target",
        "what the target has and the broker not is not there",
        "a target that was passed moves nothing back",
        "a partition without a target waits",
        "a bounded stream ends at its stop",
        "a stop before the start reads nothing",
        "a bounded stream reads no partition without a stop",
        "the nearer of target and stop counts",
        "a limit is shared by backlog",
        "a limit is shared by what may be read",
    ],
)
def test_how_far_a_batch_reads(start, there, limits, ends):
    """To the nearest of what is there, the target and the stop, and never backwards."""
    assert advanced(start, there, **limits) == replace(start, positions=ends)


@pytest.mark.parametrize(
    ("known", "seen", "kept"), [("1", "", "1"), ("1", "2", "2"), ("", "2", "2"), ("", "", "")]
)
def test_a_client_without_ids_forgets_none(known, seen, kept):
    """A checkpoint may be read on with a client that knows no ids, and then with one that does."""
    start = offset({T0: 5}, topic_ids={"t": known})

    assert known_ids({T0: 5}, start, view({"t": seen}, t0=bounds(0, 9))) == {"t": kept}


def test_a_batch_keeps_where_it_begins_and_learns_ids():
    """What begins in this batch stands in its end; ids are the broker's, or what was known."""
    start = offset({T0: 0, U0: 0}, begins={T0: 0}, topic_ids={"t": "1", "u": "1", "gone": "1"})
    there = ClusterView({"t": "2", "else": "1"}, {T0: bounds(0, 4)})

    assert advanced(start, there) == StreamOffset(
        {T0: 4, U0: 0}, begins={T0: 0}, topic_ids={"t": "2", "u": "1"}
    )


# Sharing a limit among partitions


@pytest.mark.parametrize(
    ("start", "end", "offsets"),
    [
        ({}, {}, 0),
        ({T0: 3}, {T0: 5}, 2),
        ({T0: 3, T1: 0}, {T0: 5, T1: 4}, 6),
        ({T0: 5, T1: 0}, {T0: 3, T1: 4}, 4),
        ({}, {T0: 5}, 0),
        ({T0: 5}, {}, 0),
    ],
)
def test_backlog(start, end, offsets):
    """Offsets between two positions; a partition that does not move forward has none."""
    assert backlog(start, end) == offsets


@pytest.mark.parametrize(
    ("sizes", "limit", "shares"),
    [
        ([], 10, []),
        ([5, 5], 10, [5, 5]),
        ([100], 10, [10]),
        ([100, 100], 10, [5, 5]),
        ([100, 1], 10, [9, 1]),
        ([0, 100], 10, [0, 10]),
        ([1, 1, 1], 1, [1, 1, 1]),
        ([10, 20, 30], 30, [5, 10, 15]),
        ([10, 10, 10], 10, [3, 3, 3]),
        ([2**62, 2**62], 2**62, [2**61, 2**61]),
        ([2**62 + 1, 0], 2**62, [2**62, 0]),
    ],
)
def test_a_limit_is_shared_by_backlog(sizes, limit, shares):
    """Each gets its part, rounded down but never to nothing; nobody gets more than there is."""
    start = {TopicPartition("t", number): 7 for number in range(len(sizes))}
    end = {tp: 7 + size for tp, size in zip(start, sizes, strict=True)}

    limited = rate_limited(start, end, limit)

    assert [limited[tp] - 7 for tp in start] == shares


backlogs = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 20)),
    st.tuples(st.integers(0, 2**40), st.integers(0, 2**40) | st.integers(0, 5)),
    max_size=20,
)


@given(backlogs, st.integers(1, 2**41) | st.integers(1, 100))
def test_laws_of_a_limit(partitions, limit):
    """Nobody starves, nobody gets what is not there, and the sum is the limit, but for rounding."""
    start = {tp: begin for tp, (begin, _) in partitions.items()}
    sizes = {tp: size for tp, (_, size) in partitions.items()}
    end = {tp: start[tp] + sizes[tp] for tp in start}

    limited = rate_limited(start, end, limit)
    got = {tp: limited[tp] - start[tp] for tp in start}

    assert limited.keys() == end.keys()
    assert all(min(1, sizes[tp]) <= got[tp] <= sizes[tp] for tp in got)
    assert sum(got.values()) == backlog(start, limited)
    waiting = sum(size > 0 for size in sizes.values())
    wanted = min(limit, sum(sizes.values()))
    assert wanted - waiting <= sum(got.values()) <= wanted + waiting
    assert (
        rate_limited(dict(reversed(start.items())), dict(reversed(end.items())), limit) == limited
    )


@given(backlogs, st.integers(1, 1000))
def test_limited_batches_come_to_an_end(partitions, limit):
    """Batch after batch, everything is read, each offset once."""
    begin = {tp: first for tp, (first, _) in partitions.items()}
    there = ClusterView(
        {"a": "1", "b": "1"},
        {tp: bounds(first, first + size % 5000) for tp, (first, size) in partitions.items()},
    )
    now, read = StreamOffset(begin), 0

    for _ in range(5000 * len(partitions) // limit + 5000):
        end = advanced(now, there, max_offsets=limit)
        if end.positions == now.positions:
            break
        read += sum(range_.size for range_ in ranges_between(now, end))
        now = end

    assert now.positions == there.latest
    assert read == backlog(begin, there.latest)


# Splitting


@pytest.mark.parametrize(
    ("ranges", "pieces", "cut"),
    [
        ([], None, []),
        ([], 3, []),
        ([Range("t", 0, 0, 10)], None, [(0, 0, 10)]),
        ([Range("t", 0, 0, 10)], 1, [(0, 0, 10)]),
        ([Range("t", 0, 5, 15)], 2, [(0, 5, 10), (0, 10, 15)]),
        ([Range("t", 0, 0, 10)], 3, [(0, 0, 3), (0, 3, 6), (0, 6, 10)]),
        ([Range("t", 0, 0, 2)], 5, [(0, 0, 1), (0, 1, 2)]),
        (
            [Range("t", 0, 0, 30), Range("t", 1, 0, 10)],
            4,
            [(0, 0, 10), (0, 10, 20), (0, 20, 30), (1, 0, 10)],
        ),
        ([Range("t", 0, 0, 1), Range("t", 1, 0, 1)], 2, [(0, 0, 1), (1, 0, 1)]),
        ([Range("t", 0, 3, 3)], 2, [(0, 3, 3)]),
    ],
)
def test_splitting_ranges(ranges, pieces, cut):
    """The largest is cut first, evenly, in order; an offset is never cut."""
    assert [(r.partition, r.begin, r.end) for r in split(ranges, pieces)] == cut


@pytest.mark.parametrize(
    ("sizes", "tasks", "shares"),
    [
        ([], 3, []),
        ([10, 10], None, [(0, 0, 1), (1, 0, 1)]),
        ([30, 10], 4, [(0, 0, 3), (0, 1, 3), (0, 2, 3), (1, 0, 1)]),
    ],
)
def test_sharing_the_keys_of_ranges(sizes, tasks, shares):
    """As many tasks as `split` would make, each over all offsets of its range."""
    ranges = [Range("t", number, 10, 10 + size) for number, size in enumerate(sizes)]
    found = shared(ranges, tasks)

    assert [(r.partition, r.share.index, r.share.count) for r in found] == shares
    assert all(replace(r, share=None) in ranges and r.share.ranges == len(ranges) for r in found)
    assert all(r.share.offsets == sum(sizes) for r in found)


@pytest.mark.parametrize("most", [None, 1, "auto"])
def test_each_task_of_a_table_of_several_partitions_reads_all_of_them(most):
    """It keeps its share of the keys, and no task takes the ranges of another, however few tasks are asked for."""
    ranges = [Range("t", 0, 0, 10), Range("t", 1, 5, 7)]
    plan = shared_by_all(ranges, 3)
    tasks = by_share(plan)

    assert [[replace(r, share=None) for r in task] for task in tasks] == [ranges] * 3
    assert [{(r.share.index, r.share.count) for r in task} for task in tasks] == [
        {(0, 3)},
        {(1, 3)},
        {(2, 3)},
    ]
    assert {(r.share.ranges, r.share.offsets) for r in plan} == {(2, 12)}
    assert spread(plan, most) == tasks
    assert spread(shared_by_all(ranges[:1], 1), most) == by_share(shared_by_all(ranges[:1], 1))
    assert by_share(ranges) == [tuple(ranges)]
    assert tasks_to_share(plan[0], 7) == 7


@given(
    st.lists(st.integers(1, 1_000), min_size=1, max_size=5), st.integers(1, 30), st.integers(2, 50)
)
def test_so_many_tasks_give_a_range_its_pieces(sizes, tasks, wanted):
    """Whatever its size beside the others, as far as a piece holds an offset."""
    ranges = [Range("t", number, 0, size) for number, size in enumerate(sizes)]
    first = shared(ranges, tasks)[0]

    found = shared(ranges, tasks_to_share(first, wanted))

    pieces = sum(r.partition == 0 for r in found)
    assert pieces >= min(wanted, sizes[0])


@pytest.mark.parametrize(
    ("sizes", "wanted", "tasks"),
    [
        # Alone, it has all tasks.
        ([100], 3, 3),
        # One task is there for each of the others, and one more for a size that it may not be cut to.
        ([100, 100], 2, 4),
        ([100, 100], 3, 6),
        ([100, 150], 3, 7),
        ([10, 1000], 3, 204),
        ([1000, 10], 3, 5),
    ],
)
def test_no_more_tasks_are_asked_for_than_give_a_range_its_pieces(sizes, wanted, tasks):
    """Others get theirs, by their sizes, before this one is cut again."""
    first = shared([Range("t", number, 0, size) for number, size in enumerate(sizes)], None)[0]

    assert tasks_to_share(first, wanted) == tasks


@pytest.mark.parametrize(
    ("sizes", "tasks", "shares"),
    [
        ([], None, []),
        ([], 2, []),
        ([5, 9, 3], None, [(0,), (1,), (2,)]),
        ([5, 9, 3], 3, [(0,), (1,), (2,)]),
        ([5, 9, 3], 7, [(0,), (1,), (2,)]),
        ([5, 9, 3], 2, [(0, 2), (1,)]),
        ([5, 9, 3], 1, [(0, 1, 2)]),
        ([1, 1, 1, 1], 2, [(0, 2), (1, 3)]),
        ([2, 2, 2, 100], 2, [(0, 1, 2), (3,)]),
        ([], "auto", []),
        ([10, 10, 10, 10], "auto", [(0, 1, 2, 3)]),
        ([5_000, 5_000], "auto", [(0, 1)]),
        ([5_000, 5_001], "auto", [(0,), (1,)]),
        ([1, 50_000, 1], "auto", [(0,), (1,), (2,)]),
        ([4_000] * 6, "auto", [(0, 3), (1, 4), (2, 5)]),
    ],
)
def test_spreading_ranges(sizes, tasks, shares):
    """One each while there are tasks; else each task gets about as much, in order."""
    ranges = [Range("t", number, 10, 10 + size) for number, size in enumerate(sizes)]
    found = [tuple(r.partition for r in share) for share in spread(ranges, tasks)]
    assert found == shares


@given(st.lists(st.integers(1, 2**40) | st.integers(1, 9), max_size=40), st.integers(1, 9))
def test_laws_of_spreading(sizes, tasks):
    """Each range is in one share; no task without one, none has a whole range more than another needs."""
    ranges = [Range("t", number, 0, size) for number, size in enumerate(sizes)]

    shares = spread(ranges, tasks)

    assert sorted(r.partition for share in shares for r in share) == list(range(len(sizes)))
    assert len(shares) == min(tasks, len(sizes))
    assert all(shares)
    loads = [sum(r.size for r in share) for share in shares]
    for share, load in zip(shares, loads, strict=True):
        assert load - min(r.size for r in share) <= min(loads)


@given(
    st.lists(
        st.tuples(st.integers(0, 2**40), st.integers(1, 2**40) | st.integers(1, 9)), max_size=8
    ),
    st.integers(1, 50),
)
def test_laws_of_splitting(sizes, wanted):
    """Each offset is in one piece, there are as many pieces as wanted while there are offsets."""
    ranges = [Range("t", number, begin, begin + size) for number, (begin, size) in enumerate(sizes)]

    pieces = split(ranges, wanted)

    assert len(pieces) == max(len(ranges), min(wanted, sum(r.size for r in ranges)))
    assert all(piece.size > 0 for piece in pieces)
    for range_ in ranges:
        mine = [piece for piece in pieces if piece.partition == range_.partition]
        assert (mine[0].begin, mine[-1].end) == (range_.begin, range_.end)
        assert all(one.end == other.begin for one, other in pairwise(mine))
        assert max(piece.size for piece in mine) - min(piece.size for piece in mine) <= 1


# The view


def test_the_latest_offsets_of_a_view():
    """What may be read, which open transactions keep behind the high watermark."""
    assert view(t0=bounds(0, 5, high=9), t1=bounds(2, 2)).latest == {T0: 5, T1: 2}

"""Positions, the form in which a checkpoint keeps them, and the ranges between two of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.core.positions.offsets import (
    INITIAL,
    Range,
    StreamOffset,
    TopicPartition,
    not_empty,
    ranges_between,
    stream_offset,
)


def at(**positions):
    """Positions by topic: ``at(a=[5, 7])`` is offset 5 of partition 0 and 7 of partition 1."""
    return {
        TopicPartition(topic, partition): offset
        for topic, offsets in positions.items()
        for partition, offset in enumerate(offsets)
        if offset is not None
    }


# The JSON form: checkpoints that exist hold it, so these texts must never change.

GOLDEN = [
    (None, '{"version": 1, "initial": true}'),
    (
        StreamOffset(at(b=[3], a=[1, 2]), topic_ids={"b": "id-b", "a": "id-a"}),
        (
            '{"version": 1, "topics": {"a": {"id": "id-a", "positions": {"0": 1, "1": 2}}, '
            '"b": {"id": "id-b", "positions": {"0": 3}}}}'
        ),
    ),
    (
        StreamOffset(at(a=[10, 20]), begins=at(a=[None, 7]), topic_ids={"a": ""}),
        (
            '{"version": 1, "topics": {"a": {"id": "", "positions": {"0": 10, "1": 20}, '
            '"begins": {"1": 7}}}}'
        ),
    ),
    (
        StreamOffset(at(a=[1]), begins=at(a=[0]), stop=at(a=[9]), topic_ids={"a": "x"}),
        (
            '{"version": 1, "bounded": true, "topics": {"a": {"id": "x", "positions": {"0": 1}, '
            '"begins": {"0": 0}, "stop": {"0": 9}}}}'
        ),
    ),
    (StreamOffset({}, stop={}), '{"version": 1, "bounded": true, "topics": {}}'),
    (
        StreamOffset({}, topic_ids={"a": "x"}),
        '{"version": 1, "topics": {"a": {"id": "x", "positions": {}}}}',
    ),
    (
        StreamOffset(at(a=[5]), begins=at(a=[0]), topic_ids={"a": "x"}, is_table=True),
        (
            '{"version": 2, "table": true, "topics": {"a": {"id": "x", "positions": {"0": 5}, '
            '"begins": {"0": 0}}}}'
        ),
    ),
    (
        StreamOffset(at(a=[1]), stop=at(a=[1]), topic_ids={"a": "x"}, is_table=True),
        (
            '{"version": 2, "table": true, "bounded": true, "topics": {"a": {"id": "x", '
            '"positions": {"0": 1}, "stop": {"0": 1}}}}'
        ),
    ),
    (StreamOffset({}, is_table=True), '{"version": 2, "table": true, "topics": {}}'),
]


@pytest.mark.parametrize(("offset", "text"), GOLDEN)
def test_the_json_form_is_fixed(offset, text):
    """An offset is written in this form and no other, and read from it."""
    written = INITIAL if offset is None else offset.to_json()

    assert json.dumps(written) == text
    assert stream_offset(json.loads(text)) == offset


def test_partitions_stand_in_the_order_of_their_numbers():
    """Partition 10 comes after partition 9: Spark compares offsets as text."""
    positions = {TopicPartition("t", partition): 0 for partition in (10, 9, 100, 1)}

    written = StreamOffset(positions, begins=positions, stop=positions).to_json()["topics"]["t"]

    assert [list(written[name]) for name in ("positions", "begins", "stop")] == [
        ["1", "9", "10", "100"]
    ] * 3


class Counted(dict):
    """Positions that count how often they are gone through."""

    passes = 0

    def items(self):
        """As ever."""
        self.passes += 1
        return super().items()

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


@pytest.mark.parametrize("topics", [1, 10, 200])
def test_an_offset_is_written_in_one_pass(topics):
    """However many topics there are: a thousand of them cost no more than a thousand partitions."""
    positions = Counted({TopicPartition(f"t{n}", 0): n for n in range(topics)})

    StreamOffset(positions).to_json()

    assert positions.passes == 2, "once for the names of topics, once for the offsets"


partitions = st.builds(TopicPartition, st.sampled_from(["a", "b", "t.1"]), st.integers(0, 1000))
positions = st.dictionaries(partitions, st.integers(0, 2**63 - 1), max_size=30)


@st.composite
def offsets(draw):
    """Offsets as a stream has them: what begins or stops is among the positions."""
    found = draw(positions)
    some = st.sets(st.sampled_from(sorted(found))) if found else st.just(set())
    topics = {tp.topic for tp in found}
    stop = draw(st.none() | some)
    return StreamOffset(
        positions=found,
        begins={tp: found[tp] for tp in draw(some)},
        stop=None if stop is None else {tp: found[tp] for tp in stop},
        topic_ids={topic: draw(st.sampled_from(["", "x", "y"])) for topic in topics},
        is_table=draw(st.booleans()),
    )


@given(offsets())
def test_an_offset_survives_the_checkpoint(offset):
    """Written as JSON text and read again, it is the same offset."""
    assert stream_offset(json.loads(json.dumps(offset.to_json()))) == offset


@given(offsets(), st.randoms())
def test_equal_offsets_have_equal_text(offset, random):
    """Whatever order the parts were put together in, the text is the same."""

    def shuffled(mapping):
        items = list(mapping.items())
        random.shuffle(items)
        return dict(items)

    same = StreamOffset(
        shuffled(offset.positions),
        shuffled(offset.begins),
        None if offset.stop is None else shuffled(offset.stop),
        shuffled(offset.topic_ids),
        offset.is_table,
    )

    assert json.dumps(same.to_json()) == json.dumps(offset.to_json())


@pytest.mark.parametrize("nothing", [None, {}, INITIAL, json.loads(json.dumps(INITIAL))])
def test_the_initial_offset_names_no_position(nothing):
    """Before the first batch nothing is read; Spark may also hand over nothing at all."""
    assert stream_offset(nothing) is None


@pytest.mark.parametrize(
    ("offset", "version"),
    [
        ({"version": 3, "topics": {}}, "3"),
        ({"version": 3, "initial": True}, "3"),
        ({"version": 2, "initial": True}, "2"),
        ({"version": 0, "topics": {}}, "0"),
        ({"version": "1", "topics": {}}, "'1'"),
        ({"version": 1}, "1"),
        ({"version": 1, "topics": [1]}, "1"),
        ({"t": {"0": 5}}, "None"),
    ],
)
def test_an_offset_of_another_make_is_refused(offset, version):
    """What a newer version, or another source, wrote is never guessed at."""
    with pytest.raises(CheckpointError) as error:
        stream_offset(offset)

    assert str(error.value) == (
        f"The checkpoint holds an offset that this version cannot read (version {version}, known up "
        f"to 2): {offset!r}. Use the version of pyspark_upsert_kafka that wrote it, or start with a "
        "new checkpoint."
    )


@pytest.mark.parametrize("offset", [0, 7, "7", [1], 0.5])
def test_an_offset_of_another_source_is_refused(offset):
    """A checkpoint of ``rate``, for example, holds a number: 0 is no start of ours."""
    with pytest.raises(CheckpointError, match="that of another source: it holds the offset "):
        stream_offset(offset)


# What a batch reads


@pytest.mark.parametrize(
    ("start", "end", "ranges"),
    [
        (None, StreamOffset(at(a=[5]), begins=at(a=[2])), [Range("a", 0, 2, 5)]),
        (StreamOffset(at(a=[2])), StreamOffset(at(a=[5])), [Range("a", 0, 2, 5)]),
        (
            StreamOffset(at(a=[2]), begins=at(a=[0])),
            StreamOffset(at(a=[5])),
            [Range("a", 0, 2, 5)],
        ),
        (
            StreamOffset(at(a=[2])),
            StreamOffset(at(a=[5]), begins=at(a=[3])),
            [Range("a", 0, 3, 5)],
        ),
        (
            StreamOffset(at(a=[9])),
            StreamOffset(at(a=[5]), begins=at(a=[0])),
            [Range("a", 0, 0, 5)],
        ),
        (
            StreamOffset(at(a=[2])),
            StreamOffset(at(a=[5, 1], b=[4]), begins=at(a=[None, 0], b=[3])),
            [Range("a", 0, 2, 5), Range("a", 1, 0, 1), Range("b", 0, 3, 4)],
        ),
        (StreamOffset(at(a=[2, 7])), StreamOffset(at(a=[2, 8])), [Range("a", 1, 7, 8)]),
        (StreamOffset(at(a=[2], b=[1])), StreamOffset(at(a=[3])), [Range("a", 0, 2, 3)]),
        (StreamOffset(at(a=[2])), StreamOffset(at(a=[2])), []),
        (None, StreamOffset({}), []),
    ],
    ids=[
        "the first batch begins where its end says",
        "a later batch begins where the one before ended",
        "where that one began does not matter",
        "lost data moves the beginning on",
        "a topic created anew begins anew",
        "new partitions begin where the end says",
        "a partition without news has no range",
        "a partition that is gone has no range",
        "nothing new is no range",
        "no partition is no range",
    ],
)
def test_ranges_between_two_offsets(start, end, ranges):
    """Each partition is read from where it begins in this batch, else from where it was."""
    assert ranges_between(start, end) == ranges


def test_ranges_are_in_the_order_of_partition_numbers():
    """By topic and partition number, so that plans are the same every time."""
    end = {TopicPartition("t", partition): 1 for partition in (10, 9)}

    assert [
        range_.partition
        for range_ in ranges_between(None, StreamOffset(end, dict.fromkeys(end, 0)))
    ] == [9, 10]


@pytest.mark.parametrize(
    ("start", "end", "what"),
    [
        (StreamOffset(at(a=[5])), StreamOffset(at(a=[2])), "from offset 5 to 2"),
        (StreamOffset(at(a=[5])), StreamOffset(at(b=[2])), "from offset None to 2"),
        (None, StreamOffset(at(a=[2])), "from offset None to 2"),
        (None, StreamOffset(at(a=[2]), begins=at(a=[3])), "from offset 3 to 2"),
    ],
)
def test_a_batch_that_makes_no_sense_is_refused(start, end, what):
    """Nothing is read backwards or from nowhere: the error says what the checkpoint asks for."""
    with pytest.raises(
        CheckpointError, match=rf"topic '.', partition 0 {what}\. It does not belong"
    ):
        ranges_between(start, end)


VALID = json.loads(GOLDEN[3][1])

WRONG = [
    ("topics.a", 5, "Topic 'a' is 5, expected an object"),
    ("topics.a.positions", [1], "'positions' of topic 'a' is [1], expected an object"),
    (
        "topics.a.positions.0",
        "1",
        "Partition 0 in 'positions' of topic 'a' is '1', expected a whole",
    ),
    ("topics.a.positions.0", None, "Partition 0 in 'positions' of topic 'a' is None, expected"),
    ("topics.a.begins.0", True, "Partition 0 in 'begins' of topic 'a' is True, expected a whole"),
    ("topics.a.stop.0", -1, "Partition 0 in 'stop' of topic 'a' is -1, expected a whole number"),
    ("topics.a.stop.0", 2**63, "expected a whole number from 0 to 9223372036854775807"),
    ("topics.a.stop.x", 1, "A partition in 'stop' of topic 'a' is 'x', expected a whole number"),
    ("topics.a.stop.9" + "9" * 5_000, 1, "expected a whole number"),
    ("topics.a.stop.2147483648", 1, "expected a whole number from 0 to 2147483647"),
    ("topics.a.id", 7, "The 'id' of topic 'a' is 7, expected a topic's id as text"),
    ("topics.a.id", "x" * 36, "expected a topic's id as text"),
    ("bounded", "yes", "'bounded' is 'yes', expected true or false"),
    ("table", 1, "'table' is 1, expected true or false"),
]


def changed(offset, path, value):
    """A copy of an offset with another value at a path of names."""
    copy = json.loads(json.dumps(offset))
    *way, last = path.split(".")
    block = copy
    for name in way:
        block = block[name]
    block[last] = value
    return copy


@pytest.mark.parametrize(("path", "value", "said"), WRONG)
def test_an_offset_that_was_changed_by_hand_is_refused(path, value, said):
    """The error says what is there, and what was expected."""
    with pytest.raises(CheckpointError) as error:
        stream_offset(changed(VALID, path, value))
    assert said in str(error.value)
    assert "start with a new checkpoint" in str(error.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [("topics.a.positions.2147483647", 0), ("topics.a.positions.0", 2**63 - 1)],
)
def test_the_last_partition_and_offset_that_kafka_can_have(path, value):
    """They are in the checkpoint as any other."""
    found = stream_offset(changed(VALID, path, value))

    assert found is not None
    assert found.positions[TopicPartition("a", int(path.rpartition(".")[2]))] == value


def paths(offset, above=""):
    """All paths of names in an offset."""
    for name, value in offset.items():
        yield above + name
        if isinstance(value, dict):
            yield from paths(value, f"{above}{name}.")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.data())
def test_any_changed_offset_is_read_or_refused(data):
    """Whatever stands in a checkpoint: it is an offset, or a CheckpointError, and never another error."""
    offset = VALID
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([*paths(offset)])) if offset else "topics"
        below = data.draw(st.sampled_from(["", ".0", ".x", ".positions"]))
        if f"{path}." in " ".join(paths(offset)):
            path += below
        offset = changed(offset, path, data.draw(JSON))
    for each in (offset, data.draw(JSON)):
        try:
            read = stream_offset(each)
            if read is not None:
                ranges_between(None, read)
                read.to_json()
        except CheckpointError:
            pass


@given(positions, st.data())
def test_batches_read_everything_once(end, data):
    """Over any number of batches each offset from the first begin to the last end is in one range."""
    begins = {tp: data.draw(st.integers(0, stop)) for tp, stop in end.items()}
    middle = {tp: data.draw(st.integers(begins[tp], stop)) for tp, stop in end.items()}
    first = StreamOffset(middle, begins=begins)

    read = [*ranges_between(None, first), *ranges_between(first, StreamOffset(end))]

    for tp, stop in end.items():
        mine = sorted((r.begin, r.end) for r in read if (r.topic, r.partition) == tp)
        edges = [edge for pair in mine for edge in pair]
        assert edges[1:-1:2] == edges[2:-1:2]
        assert (edges[:1], edges[-1:]) == (
            ([begins[tp]], [stop]) if stop > begins[tp] else ([], [])
        )


@pytest.mark.parametrize(("followed_to", "is_followed"), [(0, False), (5, False), (6, True)])
def test_a_range_is_followed_if_later_batches_read_past_its_end(followed_to, is_followed):
    """A batch, and a stream that ends here, are not."""
    assert Range("t", 0, 3, 5, followed_to=followed_to).is_followed is is_followed


def test_ranges_that_hold_nothing_are_left_out():
    """An empty range would cost a task; one that runs backwards holds nothing too."""
    some = Range("t", 0, 3, 5)

    assert not_empty([Range("t", 0, 5, 5), some, Range("t", 1, 5, 3)]) == [some]
    assert some.size == 2


def test_a_partition_in_a_sentence():
    """Its text can stand in an error."""
    assert str(TopicPartition("orders", 3)) == "topic 'orders', partition 3"


def test_a_topic_keeps_its_id_whichever_client_gave_it():
    """Version 0.1.0 kept kafka-python 3's spelling; another client must not take the topic for another one."""
    block = {"id": "06ac4ecc-72c4-4a94-b374-3c6903ce57f3", "positions": {"0": 5}}

    offset = stream_offset({"version": 1, "topics": {"t": block}})

    assert offset is not None
    assert offset.topic_ids == {"t": "BqxOzHLESpSzdDxpA85X8w"}
    again = stream_offset(offset.to_json())
    assert again == offset


def test_a_range_is_checked_after_its_last_message_unless_it_says_otherwise():
    """A topic that was created again meanwhile is noticed; and nothing follows a range of changes."""
    range_ = Range("t", 0, 5, 9)

    assert range_.is_checked_after
    assert not range_.is_followed
    assert not Range("t", 0, 0, 0).is_followed
    assert [Range("t", 0, 5, 9, followed_to=to).is_followed for to in (9, 10)] == [False, True]

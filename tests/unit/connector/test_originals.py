"""Which dead letters are worth writing back."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.connector.bad_messages import BadMessage
from pyspark_upsert_kafka.connector.bad_messages import _letters as dead_letters
from pyspark_upsert_kafka.connector.dead_letter_replay import (
    Original,
    ReplayChoice,
    each_once,
    last_of_each_key,
    original_of,
)
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

A, B, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)

ADDED = [
    ("__error.topic", b"t"),
    ("__error.partition", b"1"),
    ("__error.offset", b"7"),
    ("__error.timestamp", b"1000"),
    ("__error.stage", b"value"),
    ("__error.message", "kein JSON: ä".encode()),
]


def at(
    place: TopicPartition, offset: int, key: bytes | None = b"k", timestamp: int = 1000
) -> Original:
    """A letter from this place."""
    return Original(place, offset, timestamp, key, b"v")


def messages(
    place: TopicPartition,
    *found: tuple[bytes | None, int],
    timestamp: int = 1000,
    value: bytes = b"other",
) -> RawBatch:
    """Messages with these keys and offsets."""
    keys, offsets = [key for key, _ in found], [offset for _, offset in found]
    count = len(found)
    return RawBatch(
        *place,
        BytesColumn.of(keys),
        BytesColumn.of([value] * count),
        offsets,
        [1] * count,
        [timestamp] * count,
        [[]] * count,
    )


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("trace", b"1"), ("trace", None)],
        # A letter that became bad once more, as a message of the dead-letter topic itself.
        ADDED,
    ],
    ids=["none", "some", "those of a letter"],
)
def test_a_letter_is_the_message_that_it_was(headers):
    """Only what was added is taken away, whatever headers the message had."""
    assert original_of(b"k", None, [*headers, *ADDED]) == Original(B, 7, 1000, b"k", None, headers)


def test_what_is_sent_is_understood():
    """A letter says all that is needed to write the message back."""
    batch = RawBatch(
        "t",
        1,
        BytesColumn.of([b"l", b"k"]),
        BytesColumn.of([b"v", None]),
        [6, 7],
        timestamps=[999, 1000],
        headers=[[], [("trace", b"1")]],
    )
    sent = dead_letters("letters", batch, [BadMessage(1, "key", "no JSON")])

    assert list(sent.topic_of_each()) == ["letters"]
    assert [
        original_of(key, value, headers or []) for _, key, value, _, headers in sent.rows()
    ] == [Original(B, 7, 1000, b"k", None, [("trace", b"1")])]


class Untouched(BytesColumn):
    """A column of which no single value may be taken."""

    def __getitem__(self, at):
        raise AssertionError(f"the value at {at} was taken by itself")

    def __iter__(self):
        raise AssertionError("the values were listed")


def test_keys_and_values_of_letters_stay_columns():
    """A topic of nothing but bad messages costs an error text and headers for each, and no copies of its bytes one by one."""
    count = 1_000
    batch = RawBatch(
        "t",
        1,
        Untouched.of([b"k%d" % at for at in range(count)]),
        Untouched.of([None if at % 7 == 0 else b"v%d" % at for at in range(count)]),
        list(range(count)),
        timestamps=[1000] * count,
        headers=[[]] * count,
    )
    bad = [BadMessage(at, "value", "no JSON") for at in range(0, count, 2)]

    sent = dead_letters("letters", batch, bad)

    assert sent.keys.to_pylist() == [b"k%d" % at for at in range(0, count, 2)]
    assert sent.values.to_pylist()[:4] == [None, b"v2", b"v4", b"v6"]
    assert sent.headers[-1] == [
        ("__error.topic", b"t"),
        ("__error.partition", b"1"),
        ("__error.offset", b"998"),
        ("__error.timestamp", b"1000"),
        ("__error.stage", b"value"),
        ("__error.message", b"no JSON"),
    ]


@pytest.mark.parametrize(
    "headers", [[], ADDED[1:], [*ADDED, ("trace", b"1")], ADDED[::-1]], ids=range(4)
)
def test_other_messages_are_no_letters(headers):
    """A dead letter ends in the six headers; what does not was not sent by the connector."""
    assert original_of(b"k", b"v", headers) is None


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("topic", b"\xff\xfe"),
        ("topic", b"\x1b[2Jevil"),
        ("topic", b""),
        ("topic", None),
        ("partition", b"x"),
        ("partition", b"-1"),
        ("partition", b"2147483648"),
        ("partition", "\N{ARABIC-INDIC DIGIT THREE}".encode()),
        ("offset", None),
        ("offset", b"-5"),
        ("offset", b" 7"),
        ("offset", b"9223372036854775808"),
        ("offset", b"9" * 5000),
        ("timestamp", b"-2"),
        ("timestamp", b"9" * 30),
        ("timestamp", b"1e3"),
    ],
)
def test_headers_that_the_connector_does_not_write(header: str, value: bytes | None):
    """Anyone may write to the topic: what names no place of a message is no letter, and stops nothing."""
    headers = [(name, value if name == f"__error.{header}" else given) for name, given in ADDED]

    assert original_of(b"k", b"v", headers) is None


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("partition", 0, 2**31 - 1), ("offset", 0, 2**63 - 1), ("timestamp", -1, 2**63 - 1)],
)
def test_places_of_letters_are_those_that_kafka_has(header: str, least: int, most: int):
    """The first and the last one, and none beside them."""

    def letter(number: int) -> Original | None:
        name = f"__error.{header}"
        added = [(each, b"%d" % number if each == name else value) for each, value in ADDED]
        return original_of(b"k", b"v", added)

    for number in (least, most):
        found = letter(number)
        assert found is not None
        assert number in (found.at.partition, found.offset, found.timestamp)
    assert [letter(number) for number in (least - 1, most + 1)] == [None, None]


def test_a_letter_of_a_message_without_a_timestamp():
    """Kafka's own number for that is -1."""
    headers = [*ADDED[:3], ("__error.timestamp", b"-1"), *ADDED[4:]]

    assert original_of(b"k", b"v", headers) == Original(B, 7, -1, b"k", b"v", [])


def test_each_message_once_and_in_order():
    """A task that runs again sends its letters again."""
    assert each_once([at(B, 1), at(A, 9), at(A, 2), at(A, 9)]) == [at(A, 2), at(A, 9), at(B, 1)]


@pytest.mark.parametrize(
    ("letters", "replayed", "outdated"),
    [
        ([at(A, 1), at(A, 2)], [at(A, 2)], [at(A, 1)]),
        # By offset, though the timestamps say otherwise.
        ([at(A, 1, timestamp=9), at(A, 2)], [at(A, 2)], [at(A, 1, timestamp=9)]),
        # Between partitions only timestamps can tell.
        ([at(A, 1, timestamp=9000), at(B, 2)], [at(A, 1, timestamp=9000)], [at(B, 2)]),
        ([at(A, 1), at(A, 2, b"l")], [at(A, 1), at(A, 2, b"l")], []),
        ([at(A, 1), at(OTHER, 2)], [at(A, 1), at(OTHER, 2)], []),
        ([at(A, 1, b"")], [at(A, 1, b"")], []),
    ],
)
def test_the_last_letter_of_a_key_is_written_back(letters, replayed, outdated):
    """In a table it replaces those before; keys of different topics have nothing to do with each other."""
    found = last_of_each_key(letters)

    assert (found.replayed, found.outdated) == (tuple(replayed), tuple(outdated))
    assert found.keyless == ()


def test_letters_without_a_key():
    """They would be no row of a table, however often they are sent."""
    found = last_of_each_key([at(A, 1, None), at(A, 2, None), at(A, 3)])

    assert found == ReplayChoice((at(A, 3),), (), (at(A, 1, None), at(A, 2, None)))


@pytest.mark.parametrize(
    ("there", "is_outdated"),
    [
        (messages(A, (b"k", 6)), True),
        (messages(A, (b"l", 3), (b"k", 6), timestamp=1), True),
        # Before it, whatever the time.
        (messages(A, (b"k", 4), timestamp=2000), False),
        (messages(A, (b"l", 6), (None, 7)), False),
        (messages(B, (b"k", 6), timestamp=1001), True),
        (messages(B, (b"k", 6)), False),
        # Written back to another partition, while the letter is from ahead of the clock.
        (messages(B, (b"k", 6), timestamp=500, value=b"v"), True),
        (messages(B, (b"l", 6), timestamp=500, value=b"v"), False),
        (messages(A, (b"k", 4), timestamp=500, value=b"v"), False),
        (messages(OTHER, (b"k", 6), timestamp=2000), False),
    ],
)
def test_a_newer_message_of_the_key_makes_a_letter_outdated(there, is_outdated):
    """To write it back would undo the newer one; that is so too when the newer one was itself written back."""
    own = messages(A, (b"k", 5), value=b"v")
    found = ReplayChoice((at(A, 5), at(A, 9, b"m"))).without_outdated([own, there])
    kept, left_out = (at(A, 5), at(A, 9, b"m")), ()
    if is_outdated:
        kept, left_out = (at(A, 9, b"m"),), (at(A, 5),)

    assert found == ReplayChoice(kept, left_out)


@pytest.mark.parametrize(
    ("there", "is_outdated"),
    [
        # Another message stands at the letter's place, so the topic is another: times decide.
        ([messages(A, (b"x", 5), timestamp=2000), messages(A, (b"k", 0), timestamp=2000)], True),
        ([messages(A, (b"x", 5), timestamp=2000), messages(A, (b"k", 0))], True),
        ([messages(A, (b"x", 5), timestamp=500), messages(A, (b"k", 6), timestamp=500)], False),
        ([messages(A, (b"k", 5), timestamp=2000)], True),
        ([messages(A, (b"k", 5), timestamp=1000)], True),
        ([messages(A, (b"x", 5)), messages(B, (b"k", 0), timestamp=999)], False),
        # Written back there before, while the letter is from ahead of the clock.
        ([messages(A, (b"x", 5)), messages(A, (b"k", 6), timestamp=500, value=b"v")], True),
        # Nothing stands there: the topic is another and short, or compaction took the message; either order counts.
        ([messages(A, (b"k", 0), timestamp=2000)], True),
        ([messages(A, (b"k", 0), timestamp=500)], False),
        ([messages(A, (b"k", 6), timestamp=500)], True),
        ([], False),
    ],
)
def test_a_letter_of_a_topic_that_was_created_again(there, is_outdated):
    """Its offset says nothing there, so its time is compared."""
    for batches in (there, there[::-1]):
        found = ReplayChoice((at(A, 5),)).without_outdated(batches)

        assert found == (
            ReplayChoice((), (at(A, 5),)) if is_outdated else ReplayChoice((at(A, 5),))
        )


def test_letters_from_before_and_after_a_topic_was_created_again():
    """The later one counts, which was made and became a letter later, though its offset is smaller or the same."""
    old = Original(A, 5, 1000, b"k", b"v", (), sent=1100)
    for offset in (2, 5):
        new = Original(A, offset, 5000, b"k", b"w", (), sent=5100)

        for letters in ([old, new], [new, old]):
            assert last_of_each_key(each_once(letters)) == ReplayChoice((new,), (old,))
        assert ReplayChoice((new,), (old,)).without_outdated(
            [messages(A, (b"k", offset), timestamp=5000, value=b"w")]
        ) == ReplayChoice((new,), (old,))


def test_headers_tell_a_message_written_back_from_another():
    """Key and value alone may be those of a message that was there before."""
    found = ReplayChoice((Original(A, 5, 1000, b"k", b"v", [("trace", b"1")]),))

    assert found.without_outdated([messages(B, (b"k", 6), timestamp=500, value=b"v")]) == found


def test_what_was_written_back_and_is_still_bad_is_written_back_again():
    """The copy is a letter too, and the last one, though its original is from ahead of the clock."""
    original = Original(A, 5, 9000, b"k", b"v", (), sent=100)
    copy = Original(B, 6, 200, b"k", b"v", (), sent=300)
    found = last_of_each_key([original, copy])
    assert found == ReplayChoice((copy,), (original,))
    for place, offset, timestamp in ((A, 5, 9000), (B, 6, 200)):
        there = messages(place, (b"k", offset), timestamp=timestamp, value=b"v")
        assert found.without_outdated([there]) == found

    again = messages(B, (b"k", 7), timestamp=400, value=b"v")
    assert found.without_outdated([again]) == ReplayChoice((), (original, copy))


@pytest.mark.parametrize(
    ("offset", "timestamp", "sent", "is_later"),
    [
        # Against one of offset 5, timestamp 1000, sent at 2000: in one topic offsets decide.
        (6, 1000, 2000, True),
        (4, 1000, 2000, False),
        (5, 1000, 2000, False),
        # Later and of a later message, with a smaller offset: the topic was created again between them.
        (4, 1001, 2001, True),
        (4, 1000, 2001, False),
        (4, 1001, 2000, False),
        (6, 999, 1999, False),
        (6, 1000, 1999, True),
        (6, 999, 2000, True),
    ],
)
def test_which_of_two_letters_of_a_place_is_later(
    offset: int, timestamp: int, sent: int, is_later: bool
):
    """Either time alone says nothing: messages may be out of order, and letters are written by several tasks."""
    one = Original(A, 5, 1000, b"k", b"v", (), 2000)

    assert one.is_before(Original(A, offset, timestamp, b"k", b"w", (), sent)) is is_later


@pytest.mark.parametrize(
    ("value", "timestamp", "sent", "is_later"),
    [
        (b"w", 1001, 0, True),
        (b"w", 1000, 9999, False),
        # A copy, written back: when it became a letter decides, then its own time.
        (b"v", 0, 2001, True),
        (b"v", 1001, 2000, True),
        (b"v", 1000, 2000, False),
        (b"v", 9999, 1999, False),
    ],
)
def test_which_of_two_letters_of_two_places_is_later(
    value: bytes, timestamp: int, sent: int, is_later: bool
):
    """Offsets of two partitions say nothing."""
    one = Original(A, 5, 1000, b"k", b"v", (), 2000)

    assert one.is_before(Original(B, 1, timestamp, b"k", value, (), sent)) is is_later

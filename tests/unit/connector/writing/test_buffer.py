"""The keyed buffer keeps the last change per topic and key and flushes by size, by clock and at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import Queue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.writing.keyed_buffer import KeyedBuffer
from pyspark_upsert_kafka.core.errors import DeliveryError
from pyspark_upsert_kafka.core.options.frozen_options import BufferFlush
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, octets

NEVER = 3600.0


class FakeSender:
    """Keeps what it is given, one list of (topic, key, value, timestamp, headers) a call."""

    def __init__(self) -> None:
        self.sent: list[list[tuple]] = []
        self.flushed = 0
        self.closed = 0
        self.failure: Exception | None = None
        self.inside = threading.Lock()

    def send(self, messages: Messages) -> None:
        """Takes messages, or fails as told."""
        assert self.inside.acquire(blocking=False), "two threads in one sender"
        try:
            if self.failure is not None:
                raise self.failure
            self.sent.append(list(messages.rows()))
        finally:
            self.inside.release()

    def flush(self) -> None:
        """Counts."""
        self.flushed += 1

    def close(self) -> None:
        """Counts."""
        self.closed += 1


def upserts(*pairs: tuple[str, str | None], topic: str | list[str] = "t") -> Messages:
    """Messages of these keys and values."""
    return Messages(
        topic,
        octets(key.encode() for key, _ in pairs),
        octets(value and value.encode() for _, value in pairs),
    )


def short(sent: list[list[tuple]]) -> list[list[tuple[str, str | None]]]:
    """Key and value of what was sent."""
    return [[(m[1].decode(), m[2] and m[2].decode()) for m in call] for call in sent]


class MovedTime(threading.Event):
    """The event that ends a buffer; who waits for it is told by the test that an interval has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.intervals: Queue[float | None] = Queue()
        """What is waited for, an item for each time that the thread begins to wait."""
        self._answers: Queue[bool] = Queue()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the test."""
        self.intervals.put(timeout)
        return self._answers.get(timeout=60)

    def set(self) -> None:
        """Ends the buffer."""
        super().set()
        self._answers.put(True)

    def pass_interval(self) -> None:
        """Lets an interval pass; it may be noticed later."""
        self._answers.put(False)

    def pass_and_flush(self) -> None:
        """Lets an interval pass, and returns when the thread of the buffer waits for the next one."""
        self.intervals.get(timeout=60)
        self.pass_interval()
        self.intervals.put(self.intervals.get(timeout=60))


@pytest.fixture
def sender() -> FakeSender:
    """A sender without a broker."""
    return FakeSender()


@pytest.fixture
def buffer(sender: FakeSender) -> Iterator[Callable[..., KeyedBuffer]]:
    """Makes buffers and closes them after the test."""
    made: list[KeyedBuffer] = []

    def make(
        max_rows: int,
        interval_s: float = NEVER,
        closed: threading.Event | None = None,
        **more: int,
    ) -> KeyedBuffer:
        made.append(KeyedBuffer(sender, BufferFlush(max_rows, interval_s, **more), closed))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_it_keeps_the_last_change_of_a_key_until_the_end(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """Nothing is sent before the flush; then one message per key: its last change."""
    kept = buffer(10)
    kept.send(upserts(("a", "1"), ("b", "1"), ("a", "2")))
    kept.send(upserts(("b", None), ("c", "1"), ("a", "3")))
    assert sender.sent == []
    kept.flush()
    assert [sorted(call) for call in short(sender.sent)] == [[("a", "3"), ("b", None), ("c", "1")]]
    assert sender.flushed == 1
    kept.flush()
    assert len(sender.sent) == 1, "nothing is sent twice"


def test_insert_and_delete_are_one_tombstone_and_delete_and_insert_one_upsert(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """A tombstone is never left out, since an older message may be there to delete."""
    kept = buffer(10)
    kept.send(upserts(("a", "1"), ("a", None), ("b", None), ("b", "2")))
    kept.flush()
    assert sorted(short(sender.sent)[0]) == [("a", None), ("b", "2")]


def test_it_flushes_at_exactly_so_many_distinct_keys(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """Distinct keys are counted, not rows: the one that fills the buffer flushes it."""
    kept = buffer(3)
    kept.send(upserts(*[("a", str(n)) for n in range(100)], ("b", "1"), ("a", "x")))
    assert sender.sent == []
    kept.send(upserts(("c", "1"), ("d", "1"), ("d", "2"), ("a", "y")))
    assert [sorted(call) for call in short(sender.sent)] == [[("a", "x"), ("b", "1"), ("c", "1")]]
    kept.send(upserts(("e", "1"), ("f", "1")))
    assert sorted(short(sender.sent)[1]) == [("a", "y"), ("d", "2"), ("e", "1")]
    kept.flush()
    assert short(sender.sent)[2] == [("f", "1")]


def test_a_buffer_of_one_key_holds_nothing_back(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """Each message fills it, the first one too."""
    kept = buffer(1)
    for at, key in enumerate("aab", 1):
        kept.send(upserts((key, str(at))))
        assert len(sender.sent) == at


@given(
    keys=st.lists(st.sampled_from("abcdef"), max_size=40),
    max_rows=st.integers(1, 7),
    cut=st.integers(0, 40),
)
def test_each_flush_holds_the_last_changes_of_its_keys(keys: str, max_rows: int, cut: int) -> None:
    """Whatever comes: full flushes of exactly max-rows keys, and per key the changes in their order."""
    sender = FakeSender()
    kept = KeyedBuffer(sender, BufferFlush(max_rows, NEVER))
    rows = [(key, str(at)) for at, key in enumerate(keys)]
    kept.send(upserts(*rows[:cut]))
    kept.send(upserts(*rows[cut:]))
    kept.flush()
    kept.close()
    expected: list[dict[str, str]] = [{}]
    for key, value in rows:
        expected[-1][key] = value
        if len(expected[-1]) == max_rows:
            expected.append({})
    assert [dict(call) for call in short(sender.sent)] == [each for each in expected if each]
    assert all(len(call) == len(dict(call)) for call in short(sender.sent))


def test_a_key_is_one_within_its_topic(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """The same key in two topics is two rows."""
    kept = buffer(10)
    kept.send(upserts(("a", "1"), ("a", "2"), ("a", "3"), topic=["t", "u", "t"]))
    kept.flush()
    assert sorted((m[0], m[2]) for m in sender.sent[0]) == [("t", b"3"), ("u", b"2")]


def test_timestamp_and_headers_are_those_of_the_kept_change(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """What stands beside a change goes with it; where there is none: now, and no headers."""
    kept = buffer(10)
    kept.send(
        Messages("t", octets([b"a", b"a"]), octets([b"1", b"2"]), [7, 8], [[("h", b"1")], None])
    )
    kept.send(upserts(("b", "1")))
    kept.flush()
    assert sender.sent == [[("t", b"a", b"2", 8, None), ("t", b"b", b"1", 0, None)]]


def test_the_interval_flushes_while_no_row_arrives(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """When the interval has passed, what is there is sent, though no row comes to notice it."""
    time = MovedTime()
    kept = buffer(10, 20.0, time)
    kept.send(upserts(("a", "1")))
    assert sender.sent == []
    time.pass_and_flush()
    assert short(sender.sent) == [[("a", "1")]]
    kept.send(upserts(("a", "2"), ("a", "3")))
    time.pass_and_flush()
    assert short(sender.sent) == [[("a", "1")], [("a", "3")]]
    assert time.intervals.get() == 20.0
    assert sender.flushed == 0, "only the end of the batch waits for the broker"


def test_a_refused_message_in_the_clock_thread_fails_the_task(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """What fails while the clock flushes is raised where the task will see it, each time it asks."""
    time = MovedTime()
    kept = buffer(10, NEVER, time)
    sender.failure = DeliveryError("t", 0, b"a", "refused")
    kept.send(upserts(("a", "1")))
    time.pass_interval()
    kept._clock.join(60)
    assert not kept._clock.is_alive()
    sender.failure = None
    with pytest.raises(DeliveryError, match="refused"):
        kept.send(upserts(("b", "1")))
    with pytest.raises(DeliveryError, match="refused"):
        kept.flush()
    assert sender.sent == []


def test_any_failure_in_the_clock_thread_fails_the_task(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """A row that was taken from the buffer is never lost in silence, whatever went wrong."""
    time = MovedTime()
    kept = buffer(10, NEVER, time)
    sender.failure = RuntimeError("a fault of ours")
    kept.send(upserts(("a", "1")))
    time.pass_interval()
    kept._clock.join(60)
    assert not kept._clock.is_alive()
    sender.failure = None
    with pytest.raises(RuntimeError, match="a fault of ours"):
        kept.flush()


def test_closing_ends_the_clock_and_sends_nothing(sender: FakeSender) -> None:
    """A task that failed closes its buffer: what is in it is not sent, and no thread stays behind."""
    kept = KeyedBuffer(sender, BufferFlush(10, NEVER))
    kept.send(upserts(("a", "1")))
    kept.close()
    assert sender.sent == []
    assert sender.closed == 1
    assert not kept._clock.is_alive()


def test_a_buffer_may_be_closed_twice(sender: FakeSender) -> None:
    """As a file may: the second time nothing is waited for."""
    kept = KeyedBuffer(sender, BufferFlush(10, NEVER))
    kept.close()
    again = threading.Thread(target=kept.close, daemon=True)
    again.start()
    again.join(60)
    assert not again.is_alive()


def test_a_process_ends_though_a_buffer_is_not_closed(buffer: Callable[..., KeyedBuffer]) -> None:
    """Its clock keeps no process alive."""
    assert buffer(10)._clock.daemon


def test_rows_and_the_clock_do_not_get_in_each_others_way(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """Under a clock that never rests, the last change of every key arrives last."""
    kept = buffer(50, 0.001)
    for at in range(300):
        kept.send(upserts(*[(f"k{(at * 7 + n) % 90}", f"{at}-{n}") for n in range(30)]))
    kept.flush()
    expected = {f"k{(at * 7 + n) % 90}": f"{at}-{n}" for at in range(300) for n in range(30)}
    assert {key: value for call in short(sender.sent) for key, value in call} == expected


def large(*sizes: int, key: str | None = None) -> Messages:
    """Messages with values of these sizes, under keys of their own or all under one."""
    return upserts(*[(key or f"k{at}", "x" * size) for at, size in enumerate(sizes)])


def test_large_values_flush_early(sender: FakeSender, buffer: Callable[..., KeyedBuffer]) -> None:
    """However many keys it may hold, the buffer is sent before it holds more bytes than it may."""
    kept = buffer(1_000_000, NEVER, max_bytes=1000)
    kept.send(large(*[90] * 100))
    assert sum(len(call) for call in sender.sent) >= 90
    assert all(len(call) <= 11 for call in sender.sent), "more than the limit was held"
    kept.send(large(5000))
    assert len(sender.sent[-1][-1][2]) == 5000, (
        "a value that is larger than the limit is sent at once"
    )
    kept.flush()
    assert sum(len(call) for call in sender.sent) == 101


def test_what_was_overwritten_takes_no_room(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """A key that changes ten thousand times is one message, as long as its last value fits."""
    kept = buffer(1_000_000, NEVER, max_bytes=1000)
    for _ in range(100):
        kept.send(large(*[90] * 100, key="k"))
    assert sender.sent == []
    kept.flush()
    assert len(sender.sent[0]) == 1


def test_headers_count_as_bytes(sender: FakeSender, buffer: Callable[..., KeyedBuffer]) -> None:
    """Large headers flush as large values do; a key, a value or the content of a header that is null has no bytes."""
    kept = buffer(1_000_000, NEVER, max_bytes=1000)
    kept.send(
        Messages(
            "t",
            octets([b"a", None]),
            octets([None, b"v"]),
            None,
            [[("h", b"x" * 990), ("n", None)], None],
        )
    )
    kept.send(Messages("t", octets([b"b"]), octets([b"v"]), None, [[("h", b"v")]]))
    assert sender.sent == [], "998 bytes"
    kept.send(upserts(("c", "v")))
    assert len(sender.sent) == 1


def test_an_interval_of_a_thousand_years_is_an_interval(
    sender: FakeSender, buffer: Callable[..., KeyedBuffer]
) -> None:
    """An interval longer than the machine can wait leaves the clock alive."""
    time = MovedTime()
    kept = buffer(10, 300_000 * 86_400.0, time)
    kept.send(upserts(("a", "1")))
    assert time.intervals.get(timeout=60) == threading.TIMEOUT_MAX
    kept.flush()
    assert short(sender.sent) == [[("a", "1")]]


class StuckSender(FakeSender):
    """Waits in `send` for a broker that does not answer, until it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.is_stuck = threading.Event()
        self.cancelled = threading.Event()

    def send(self, messages: Messages) -> None:
        """Waits."""
        assert not self.closed
        self.is_stuck.set()
        assert self.cancelled.wait(60)
        raise DeliveryError("t", 0, b"a", "cancelled")

    def cancel(self) -> None:
        """Lets it go."""
        self.cancelled.set()


def test_closing_cancels_a_clock_that_is_stuck() -> None:
    """A broker that hangs holds back no error that a task has, and nothing is sent once the sender is closed."""
    sender, time = StuckSender(), MovedTime()
    kept = KeyedBuffer(sender, BufferFlush(10, NEVER), time)
    kept.send(upserts(("a", "1")))
    time.pass_interval()
    assert sender.is_stuck.wait(60)
    kept.close()
    assert sender.closed == 1
    assert not kept._clock.is_alive()


def test_cancelling_ends_the_clock_and_what_waits_for_the_broker() -> None:
    """The sender is told, and no interval passes any more."""
    sender, time = StuckSender(), MovedTime()
    kept = KeyedBuffer(sender, BufferFlush(10, NEVER), time)
    kept.cancel()
    kept._clock.join(60)
    assert not kept._clock.is_alive()
    assert sender.cancelled.is_set()
    kept.close()


def test_a_clock_that_comes_late_sends_nothing(sender: FakeSender) -> None:
    """Its interval may be over at the moment at which the buffer is closed."""
    time = MovedTime()
    kept = KeyedBuffer(sender, BufferFlush(10, NEVER), time)
    kept.send(upserts(("a", "1")))
    with kept._lock:
        time.pass_interval()
        time.set()
    kept._clock.join(60)
    assert not kept._clock.is_alive()
    assert sender.sent == []
    kept.close()

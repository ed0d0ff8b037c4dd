"""The changes in topics as they come, read in this process: rounds of what is there, one partition after another.

Where reading is, is a `StreamOffset`, as in a checkpoint of Spark. But it advances with each batch of rows: it names what was
read, and not what was planned. ``is_table`` says that the table as of these positions is not read to its end; the partitions of
which it was read begin where they end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace

from pyspark_upsert_kafka.connector.planning.stream_reader import StreamReader
from pyspark_upsert_kafka.connector.planning.topic_observer import Observer
from pyspark_upsert_kafka.connector.read_request import Request
from pyspark_upsert_kafka.connector.reading.message_rows import Rows
from pyspark_upsert_kafka.connector.reading.task_reading import (
    ChangeReader,
    Changes,
    read_with,
    with_last_checked,
)
from pyspark_upsert_kafka.core.clock import SYSTEM_CLOCK, WallClock
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import CheckpointError, DataLossError
from pyspark_upsert_kafka.core.options.frozen_options import Limits
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.data_loss import is_other_topic
from pyspark_upsert_kafka.core.positions.offsets import (
    INITIAL,
    Range,
    StreamOffset,
    TopicPartition,
    stream_offset,
)
from pyspark_upsert_kafka.core.positions.planning import by_share


@dataclass(frozen=True)
class Step:
    """What was read, or that all was read that there is so far.

    Args:
        at: Where reading is after it.
        place: The partition; one of them, where rows of the table may be of several.
        rows: The rows, one at least; None = all was read.
    """

    at: StreamOffset
    place: TopicPartition | None = None
    rows: Rows | None = None


@dataclass(frozen=True)
class _Found:
    """Rows that were read.

    Args:
        before: Where reading was before them, behind all that was read earlier.
        after: Where it is after them at least.
        place: Their partition.
        rows: The rows.
    """

    before: StreamOffset
    after: StreamOffset
    place: TopicPartition
    rows: Rows


class ChangeStream:
    """Reads the changes in topics; what it remembers saves requests, and is no part of where it is.

    Args:
        request: What is read.
        limits: How much a round reads.
        clock: Says when the brokers are asked again.
        chosen: Passes on which of the changes of a range count.
        stops_at_end: Whether it reads no further than the topics reach now.

    Raises:
        BrokerError: No broker answers.
    """

    def __init__(
        self,
        request: Request,
        limits: Limits = Limits(),  # noqa: B008 - it is frozen
        clock: WallClock = SYSTEM_CLOCK,
        chosen: Callable[[Changes], Changes] = iter,
        *,
        stops_at_end: bool = False,
    ) -> None:
        self._request, self._limits, self._chosen = request, limits, chosen
        self._stops_at_end = stops_at_end
        self._planner = StreamReader(request.table, request.options, clock)
        self._reader = ChangeReader(request.table, request.options)
        self._question, self._asking = Observer(request.options, clock), threading.Lock()
        self._asked: ClusterView | None = None
        if stops_at_end:
            self._planner.freeze_target()

    def beginning(self) -> StreamOffset:
        """Where a new stream begins.

        Raises:
            BrokerError: No broker answers, or there is no such topic.
            DataLossError: A wanted start is gone, and ``failOnDataLoss`` is true.
        """
        first = _known(self._planner.next_offset(INITIAL, self._limits))
        return first if first.is_table else replace(first, positions=first.begins, begins={})

    def check(self, at: StreamOffset) -> None:
        """Checks that what follows a position can be read.

        Raises:
            BrokerError: No broker answers.
            CheckpointError: The position cannot be that of such a stream.
            DataLossError: What follows is gone, and ``failOnDataLoss`` is true.
        """
        try:
            if at.is_table:
                self._planner.ranges(INITIAL, at.to_json())
            else:
                self._planner.next_offset(at.to_json(), self._limits)
        except DataLossError as loss:
            seen = self._question.current().topic_ids.get(loss.topic, "")
            if not is_other_topic(at.topic_ids.get(loss.topic, ""), seen):
                raise
            raise CheckpointError(
                f"position is of a topic {loss.topic!r} that was deleted and created again since: its id is {seen!r}, and "
                f"was {at.topic_ids[loss.topic]!r}. Leave position out, to begin with the table again; or go on with all "
                "messages of the new topic, by 'failOnDataLoss' = 'false'."
            ) from None

    def steps(self, at: StreamOffset) -> Generator[Step, None, None]:
        """What follows a position; it ends where the stream has an end.

        Raises:
            UpsertKafkaError: As a streaming query would raise it.
        """
        self._planner.discover_again()
        if at.is_table:
            at = yield from _steps(self._table(at))
            yield Step(at)
        start = at.to_json()
        while True:
            end = self._planner.next_offset(start, self._limits)
            if end is not start:
                at = yield from _steps(self._round(at, start, end))
                start = end
            elif self._stops_at_end:
                return
            yield Step(at)
            if _has_ended(at):
                return

    def has_read_all(self, at: StreamOffset) -> bool:
        """Whether nothing follows a position that is in the topics now; may be asked by another thread.

        Raises:
            BrokerError: No broker answers.
        """
        with self._asking:
            if self._asked is not None and _is_behind(at, self._asked):
                return (
                    False  # as long as what the last answer named is not read, no other is needed
                )
            self._asked = self._question.current()
            return not _is_behind(at, self._asked)

    def commit(self, at: StreamOffset) -> None:
        """Commits where reading is to the consumer group of the options, if any, for Kafka's tools."""
        self._planner.commit(at.to_json())

    def close(self) -> None:
        """Ends the connections that ask about the topics; readers end with their steps."""
        self._planner.stop()
        with self._asking:
            self._question.close()

    def _round(
        self, at: StreamOffset, start: dict[str, object], end: dict[str, object]
    ) -> Generator[_Found, None, StreamOffset]:
        """Reads the changes between two offsets of the planner; returns where reading is then."""
        after = _known(end)
        known = {**at.positions, **after.begins}
        begun = {place: known[place] for place in after.positions}
        at = replace(after, positions=begun, begins={}, is_table=False)
        for range_ in with_last_checked(self._planner.ranges(start, end)):
            place = TopicPartition(range_.topic, range_.partition)
            # An error of the rows ends the client's fetches at once, and not when its traceback is forgotten.
            with closing(self._reader.read(range_)) as changes:
                for batch, rows in self._chosen(changes):
                    if not len(batch):
                        continue
                    before, at = at, _moved(at, place, batch.offsets[-1] + 1)
                    if len(rows):
                        yield _Found(before, at, place, rows)
            at = _moved(at, place, range_.end)
        return replace(after, begins={}, is_table=False)

    def _table(self, at: StreamOffset) -> Generator[_Found, None, StreamOffset]:
        """Reads the table as of a position; returns where reading is then."""
        options = self._request.options
        ranges = self._planner.ranges(INITIAL, at.to_json())
        table = ChangeReader(self._request.table, replace(options, mode="snapshot"))
        merges = options.merges_partitions
        begun = 0

        def counted(changes: Changes, _: Range) -> Changes:
            nonlocal begun
            begun += 1
            return changes

        for task in by_share(ranges) if merges else [ranges]:
            for batch in read_with(table, task, counted):
                place = TopicPartition(ranges[begun - 1].topic, ranges[begun - 1].partition)
                # Where partitions are merged, no row is there before all of them are read.
                here = at if merges else _without(at, ranges[begun - 1 :])
                yield _Found(here, here, place, Rows(batch.columns, None, []))
        return replace(at, begins={}, is_table=False)


def _steps(found: Generator[_Found, None, StreamOffset]) -> Generator[Step, None, StreamOffset]:
    """Holds each batch of rows back until the next one is there, or nothing more.

    So the position after it is behind all that has no rows, such as the markers of transactions: with the last rows all is read.
    """
    held: _Found | None = None
    with closing(found):
        while True:
            try:
                following = next(found)
            except StopIteration as end:
                final: StreamOffset = end.value
                break
            except Exception:
                if held is not None:
                    yield Step(held.after, held.place, held.rows)
                raise
            if held is not None:
                yield Step(following.before, held.place, held.rows)
            held = following
    if held is not None:
        yield Step(final, held.place, held.rows)
    return final


def _known(offset: dict[str, object]) -> StreamOffset:
    found = stream_offset(offset)
    if found is None:
        raise ValueError("The planner never answers with the initial offset.")
    return found


def _moved(at: StreamOffset, place: TopicPartition, offset: int) -> StreamOffset:
    return replace(at, positions={**at.positions, place: offset})


def _without(at: StreamOffset, left: Iterable[Range]) -> StreamOffset:
    """Where reading is in a table of which only some ranges are left."""
    places = {TopicPartition(range_.topic, range_.partition) for range_ in left}
    begins = {
        place: begin if place in places else at.positions[place]
        for place, begin in at.begins.items()
    }
    return replace(at, begins=begins)


def _is_behind(at: StreamOffset, view: ClusterView) -> bool:
    """Whether the topics hold messages that are not read."""
    read = at.begins if at.is_table else at.positions
    return any(
        bounds.latest > bounds.earliest
        and (
            read.get(place, bounds.earliest) < bounds.latest
            or is_other_topic(at.topic_ids.get(place.topic, ""), view.topic_ids[place.topic])
        )
        for place, bounds in view.bounds.items()
    )


def _has_ended(at: StreamOffset) -> bool:
    """Whether a stream with an end has reached it in all partitions."""
    stop = at.stop
    return stop is not None and all(
        at.positions.get(place, end) >= end for place, end in stop.items()
    )

"""What of a message its row may set besides key and value: topic, timestamp and headers."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.core.table.columns import Table
from pyspark_upsert_kafka.core.table.metadata import ALL_METADATA, HEADERS
from pyspark_upsert_kafka.kafka.sending.messages import Headers
from pyspark_upsert_kafka.local_time import utc_timestamps

_OF_MESSAGES = {"timestamp", *HEADERS}


def sets_metadata(table: Table) -> bool:
    """Whether messages may have timestamps or headers; if not, a sender is opened that takes none."""
    return any(column.key in _OF_MESSAGES for column in table.metadata)


class WrittenMetadata:
    """Reads the metadata columns of rows that are written.

    Args:
        table: The table; where it has no such column, there is nothing to set.
        topics: Those that may be written to; the first one unless a row chooses among several.
        time_zone: The session's, for timestamps without one.
    """

    def __init__(self, table: Table, topics: tuple[str, ...], time_zone: str) -> None:
        self._topics, self._time_zone = topics, time_zone
        self._names = {
            column.key: column.name
            for column in table.metadata
            if ALL_METADATA[column.key].writable
        }

    def topics(self, rows: pa.RecordBatch) -> str | list[str]:
        """One topic for all messages, or that of each."""
        name = self._names.get("topic")
        if name is None or len(self._topics) == 1:
            return self._topics[0]
        chosen = rows.column(name).to_pylist()
        for topic in set(chosen):
            if topic not in self._topics:
                raise EncodeError(
                    name,
                    "The topic of the sink record is not valid. Expected topic to be in: "
                    f"[{', '.join(self._topics)}] but was: {topic or 'null'}",
                )
        return cast("list[str]", chosen)

    def timestamps(self, rows: pa.RecordBatch) -> list[int] | None:
        """The timestamp of each message in ms since the epoch, 0 = now; None = now for all."""
        name = self._names.get("timestamp")
        if name is None:
            return None
        column = rows.column(name)
        if column.type.tz is None:
            column = utc_timestamps(column, self._time_zone)
        ms = pc.divide(column.cast(pa.int64()), 1000)
        if len(ms) > ms.null_count and pc.min(ms).as_py() <= 0:
            raise EncodeError(name, "a record timestamp must be later than 1970-01-01 00:00:00 UTC")
        return cast("list[int]", pc.fill_null(ms, 0).to_pylist())

    def headers(self, rows: pa.RecordBatch) -> list[Headers | None] | None:
        """The headers of each message; None = none has any."""
        name = self._names.get("header-list") or self._names.get("headers")
        if name is None:
            return None
        lists = rows.column(name).to_pylist()
        if "header-list" in self._names:
            lists = [each and [_pair(header) for header in each] for each in lists]
        for each in lists:
            if each and any(key is None for key, _ in each):
                raise EncodeError(name, "a header has no key")
        return cast("list[Headers | None]", lists)


def _pair(header: dict[str, Any] | None) -> tuple[str | None, bytes | None]:
    return (None, None) if header is None else (header["key"], header["value"])

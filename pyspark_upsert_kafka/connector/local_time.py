"""Local times in the time zone of a session: timestamps without a zone, from those in UTC and to them.

Spark spells offsets in ways that Arrow does not know (``Z``, ``-08``, ``GMT+01:00``), and a JVM without
a configured zone may be in one of them.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?(?::?(\d\d))?")


def local_time(utc: pa.TimestampArray, zone: str) -> pa.TimestampArray:
    """Timestamps as what a clock in that zone shows: timestamps without a zone."""
    utc = utc.cast(pa.timestamp("us", "UTC"))
    offset = _offset_us(zone)
    if offset is None:
        return pc.local_timestamp(utc.cast(pa.timestamp("us", zone)))
    return pc.add(utc.cast(pa.int64()), offset).cast(pa.timestamp("us"))


def utc_timestamps(local: pa.TimestampArray, zone: str) -> pa.TimestampArray:
    """The timestamps in UTC at which a clock in that zone shows these times: of two, the earlier."""
    offset = _offset_us(zone)
    if offset is None:
        return pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    return pc.subtract(local.cast(pa.int64()), offset).cast(pa.timestamp("us", "UTC"))


def _offset_us(zone: str) -> int | None:
    """The zone's fixed offset from UTC in microseconds; None = it is a region's."""
    if zone in ("Z", "UTC", "GMT", "UT"):
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
    size = (hours * 3600 + minutes * 60 + seconds) * 1_000_000
    return -size if match[1] == "-" else size

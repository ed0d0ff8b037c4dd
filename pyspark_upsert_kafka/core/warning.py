"""Warnings: once for each query started, as nearly as Spark lets a Python source know what a query is."""

from __future__ import annotations

import logging

logger = logging.getLogger("pyspark_upsert_kafka")

_warned: set[str] = set()


def warn_once(*texts: str) -> None:
    """Logs each text as a warning, unless this process has done so before.

    To be called where a query is planned, on the driver: Spark plans a streaming write again for every
    micro-batch. A text that names its topic is logged for each topic.
    """
    for text in texts:
        if text not in _warned:
            _warned.add(text)
            logger.warning(text)


def is_on(setting: str | None) -> bool:
    """Whether a setting of Spark is on.

    >>> is_on("TRUE "), is_on(None)
    (True, False)
    """
    return (setting or "").strip().lower() == "true"


def speculation(setting: str | None, topics: str) -> list[str]:
    """The warning about ``spark.speculation`` when it is on; else none.

    >>> speculation("false", "users"), speculation(None, "users")
    ([], [])
    """
    if not is_on(setting):
        return []
    text = (
        f"'spark.speculation' is on while topic {topics} is written: two attempts of a task may write at "
        "the same time, and the slower one may leave an older value of a key last. Turn it off for "
        "jobs that write (see docs/writing.md)."
    )
    return [text]

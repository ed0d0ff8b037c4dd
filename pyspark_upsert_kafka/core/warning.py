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

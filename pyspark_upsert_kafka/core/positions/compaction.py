"""What compaction may have removed: whether a table as of a past moment can still be read, and until when one of now can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

POLICY, LAG = "cleanup.policy", "min.compaction.lag.ms"

TopicConfigs = Mapping[str, Mapping[str, str]]
"""`POLICY` and `LAG` of each topic, as far as brokers tell them."""

_NAMED = 3
"""Topics that a warning names at most."""

CLOCKS_DIFFER_MS = 300_000
"""How much the clocks of a driver and its workers may differ: as much as Kerberos allows."""


def kept_until_ms(configs: TopicConfigs | None, topic: str, planned_ms: int) -> int | None:
    """Until when a topic certainly keeps the message that was a key's newest one when a snapshot was planned; None = for ever.

    Args:
        configs: None = not known: then it may be compacted at any time.
        topic: The topic.
        planned_ms: When it was planned, in ms since the epoch, by the clock of the driver.

    Returns:
        By the clock of a worker, in ms since the epoch; 0 = for no time.

    >>> compacted = {"cleanup.policy": "compact", "min.compaction.lag.ms": "3600000"}
    >>> kept_until_ms({"t": compacted}, "t", 1_000_000)
    4300000
    >>> kept_until_ms({"t": {**compacted, "min.compaction.lag.ms": "0"}}, "t", 1_000_000), kept_until_ms({"t": {}}, "t", 1)
    (0, 0)
    """
    if configs is None:
        return 0
    lag = _lags(configs).get(topic)
    if lag is None:
        return None
    return planned_ms + lag - CLOCKS_DIFFER_MS if lag > CLOCKS_DIFFER_MS else 0


def past_table_warning(
    configs: TopicConfigs | None, at_ms: int | None, now_ms: int, option: str
) -> str | None:
    """The warning about a snapshot that ends in the past; None = there is none.

    Compaction may remove a message that was overwritten later as soon as it is older than
    ``min.compaction.lag.ms``: the table of an earlier moment lacks it then.

    Args:
        configs: None = not known.
        at_ms: The table's time, in ms since the epoch; None = not known, since the end is an offset.
        now_ms: The time now.
        option: The option that says where it ends, with its value, as errors show it.
    """
    if at_ms is not None and at_ms >= now_ms:
        return None
    moment = "an earlier time" if at_ms is None else _shown_time(at_ms)
    table = f"The table as of {moment} ({option}) may lack rows"
    if configs is None:
        return (
            f"{table}: it is complete only if that time is not longer ago than {LAG} of the topic, which cannot be "
            "read (the ACL operation DescribeConfigs on the topic is missing)."
        )
    lags = _lags(configs)
    short = sorted(topic for topic, lag in lags.items() if now_ms - (at_ms or 0) > lag)
    if not short:
        return None
    shown = ", ".join(f"{topic!r} ({lags[topic]} ms)" for topic in short)
    lost = (
        f"{table}: compaction keeps a message that was overwritten only for {LAG} of topic {shown}"
    )
    if at_ms is None:
        return f"{lost}. The table is complete only if that time is not longer ago."
    return f"{lost}, and that time is longer ago. To read earlier tables in future, raise {LAG}."


def _shown_time(ms: int) -> str:
    """A time in ms since the epoch, as people read it, in UTC.

    >>> _shown_time(1_769_860_800_000)
    '2026-01-31T12:00:00.000Z'
    """
    return f"{datetime.fromtimestamp(ms // 1000, timezone.utc):%Y-%m-%dT%H:%M:%S}.{ms % 1000:03}Z"


def _lags(configs: TopicConfigs) -> dict[str, int]:
    """The lag of each topic that is compacted, or may be, in ms."""
    return {
        topic: int(each.get(LAG, 0))
        for topic, each in configs.items()
        if "compact" in each.get(POLICY, "compact")
    }


def not_compacted(configs: TopicConfigs, servers: str) -> list[str]:
    """The warnings about topics that hold a table and are not compacted: one for all topics with the same policy.

    Args:
        configs: `POLICY` of each topic.
        servers: The bootstrap servers, for the command that puts it right.

    >>> not_compacted({"users": {"cleanup.policy": "compact,delete"}}, "localhost:9092")
    []
    """
    topics_of: dict[str, list[str]] = {}
    for topic, each in sorted(configs.items()):
        policy = each.get(POLICY)
        if policy is not None and "compact" not in policy:
            topics_of.setdefault(policy, []).append(topic)
    return [
        f"{_have(topics)} {POLICY} = {policy!r}: Kafka deletes messages by age or size, and so loses "
        "rows of the table that have not changed for long. To compact it: "
        f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name {topics[0]} "
        f"--add-config {POLICY}=compact"
        for policy, topics in topics_of.items()
    ]


def _have(topics: Sequence[str]) -> str:
    """The beginning of a sentence about topics, of which the first ones are named.

    >>> _have(["users"]), _have(["a", "b"]), _have(["a", "b", "c", "d"])
    ("Topic 'users' has", "2 topics ('a', 'b') have", "4 topics ('a', 'b', 'c', ...) have")
    """
    if len(topics) == 1:
        return f"Topic {topics[0]!r} has"
    named = [*map(repr, topics[:_NAMED]), *(["..."] if len(topics) > _NAMED else [])]
    return f"{len(topics):,} topics ({', '.join(named)}) have"

"""Whether a table as of a past moment can still be read from a topic that is compacted."""

from __future__ import annotations

from collections.abc import Mapping

POLICY, LAG = "cleanup.policy", "min.compaction.lag.ms"


def past_table_warning(
    settings: Mapping[str, Mapping[str, str]] | None, at_ms: int, now_ms: int
) -> str | None:
    """What to say of a snapshot at a past time; None = nothing.

    Compaction may remove a message that was overwritten later as soon as it is older than
    ``min.compaction.lag.ms``: the table of an earlier moment lacks it then.

    Args:
        settings: `POLICY` and `LAG` of each topic; None = not known.
        at_ms: The table's time, in ms since the epoch.
        now_ms: The time now.
    """
    if at_ms >= now_ms:
        return None
    age = f"The table as of {now_ms - at_ms} ms ago ('scan.bounded.timestamp-millis' = '{at_ms}')"
    if settings is None:
        return (
            f"{age} may lack rows: it is right only if that time is younger than the topic's "
            f"{LAG}, which the broker does not tell (the ACL operation DescribeConfigs on the topic is missing)."
        )
    lags = {
        topic: int(each.get(LAG, 0))
        for topic, each in settings.items()
        if "compact" in each.get(POLICY, "")
    }
    short = sorted(topic for topic, lag in lags.items() if now_ms - at_ms > lag)
    if not short:
        return None
    shown = ", ".join(f"{topic!r} ({lags[topic]})" for topic in short)
    return (
        f"{age} may lack rows: compaction keeps what was overwritten later only as long as {LAG} says, "
        f"which is shorter for topic {shown}. Give the topic a longer one before the time that is "
        "to be read."
    )


def not_compacted(settings: Mapping[str, Mapping[str, str]], servers: str) -> list[str]:
    """The warnings about topics that hold a table and are not compacted.

    Args:
        settings: `POLICY` of each topic.
        servers: The bootstrap servers, for the command that puts it right.

    >>> not_compacted({"users": {"cleanup.policy": "compact,delete"}}, "localhost:9092")
    []
    """
    return [
        f"Topic {topic!r} has {POLICY} = {policy!r}: Kafka deletes its messages by age or size, and with them "
        "rows of the table that have not changed since. To have it compacted: "
        f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name {topic} "
        f"--add-config {POLICY}=compact"
        for topic, policy in ((topic, each.get(POLICY)) for topic, each in sorted(settings.items()))
        if policy is not None and "compact" not in policy
    ]

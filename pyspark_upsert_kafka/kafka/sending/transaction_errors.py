"""What is said of an error in a transaction, whichever client raises it."""

from __future__ import annotations

_FENCED = frozenset({47, 67, 90})
"""Kafka's error codes INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED and PRODUCER_FENCED."""

_REMEDIES = {
    49: "the broker has forgotten the transactional id, as it does after 'transactional.id.expiration.ms'",
    50: (
        "lower 'properties.transaction.timeout.ms', or raise the brokers' 'transaction.max.timeout.ms', which "
        "is the most that they allow"
    ),
    53: "the sink needs the rights to Write and Describe on every transactional id with its prefix",
    30: "the sink needs the right to Read on every consumer group with its prefix, for its receipts",
    29: "the sink needs the rights to Read, for its receipts, and to Write on its topics",
}
"""What to do about error codes of Kafka's protocol."""


def is_fenced(code: int) -> bool:
    """Whether another sender with the same transactional id was opened meanwhile.

    >>> is_fenced(90), is_fenced(53)
    (True, False)
    """
    return code in _FENCED


def explained(transactional_id: str, code: int, text: str) -> str:
    """Why a transaction failed, in a sentence without its end.

    Args:
        transactional_id: The transactional id.
        code: The error's code in Kafka's protocol.
        text: The error in the client's words.

    >>> explained("sink-7d0c-0-3", 7, "Broker: Request timed out")
    "transactional id 'sink-7d0c-0-3': Broker: Request timed out"
    """
    about = f"transactional id {transactional_id!r}: {text.removesuffix('.')}"
    if is_fenced(code):
        return (
            f"{about}. It is fenced off, and writes nothing more: a newer attempt of the task, or a newer run of "
            "the query, writes under this id, or its transaction was open for longer than "
            "'properties.transaction.timeout.ms'"
        )
    remedy = _REMEDIES.get(code)
    return f"{about}. What helps: {remedy}" if remedy else about

"""How many bytes are queued, whichever client is used."""

from __future__ import annotations


def larger_than_queue(size: int) -> str:
    """Why a message is refused that would not fit even into an empty queue."""
    return (
        f"a message of {size} bytes does not fit into the client's queue: raise "
        "'properties.buffer.memory' (bytes) or 'properties.queue.buffering.max.kbytes'"
    )

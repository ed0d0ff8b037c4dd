"""How much memory a task may use for what it gathers."""

from __future__ import annotations

MAX_HELD_BYTES = 64 * 1024 * 1024
"""How many bytes a task may gather in one place: rows that are decoded together, rows to encode, a buffer."""

MAX_ROW_BYTES = 2 * MAX_HELD_BYTES
"""How many bytes the row of one message may take, without its texts and binaries, which are no longer than the message."""

"""How much memory a task may use for what it gathers."""

from __future__ import annotations

MAX_HELD_BYTES = 64 * 1024 * 1024
"""What a task gathers in one place is bounded by so many bytes: rows to encode, a buffer, defaults of a schema."""

KEPT_CODECS = 8
"""So many tables have their compiled decoders and encoders kept in a worker."""

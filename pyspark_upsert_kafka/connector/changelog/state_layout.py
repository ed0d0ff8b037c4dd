"""What the state of a normalized changelog was written with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark_upsert_kafka.core.errors import CheckpointError

_VERSION, _VERSION_WITH_TIMES = 3, 4
"""In version 1 a bucket was one value. Version 2 was never released. Version 4 keeps where and when the last change of each key
was, deletes of the last day among them."""


@dataclass(frozen=True)
class Layout:
    """What the state is written with, and what a query that goes on with it must have.

    Args:
        buckets: Over how many buckets the keys are spread.
        keys: The columns of the key.
        columns: The columns of the rows, and their types.
        has_times: Whether times are kept, by which changes of a key in several partitions are ordered.
    """

    buckets: int
    keys: Sequence[str]
    columns: Mapping[str, str]
    has_times: bool = False

    def to_json(self) -> str:
        """It as the state keeps it."""
        version = _VERSION_WITH_TIMES if self.has_times else _VERSION
        kept = {"buckets": self.buckets, "keys": list(self.keys), "columns": dict(self.columns)}
        return json.dumps({"version": version, **kept})

    def check(self, kept: str) -> None:
        """Refuses to go on with a state that was written with another layout.

        Columns may have been added: rows from before have NULL there.

        Raises:
            CheckpointError: Naming the number of buckets, or the first column that is wrong.
        """
        old = json.loads(kept)
        start_anew = "Keep what the checkpoint has, or start with a new one."
        if old["version"] not in (1, _VERSION, _VERSION_WITH_TIMES):
            raise CheckpointError(
                "normalize_changelog: the checkpoint was written by a later version of this package, or by one that was "
                f"never released. {start_anew}"
            )
        if old["buckets"] != self.buckets:
            raise CheckpointError(
                f"normalize_changelog: the checkpoint has buckets={old['buckets']}, and this query has "
                f"buckets={self.buckets}: a key would be in another bucket. {start_anew}"
            )
        if old["keys"] != list(self.keys):
            raise CheckpointError(
                f"normalize_changelog: the checkpoint has the keys {', '.join(old['keys'])}, and this query "
                f"has {', '.join(self.keys)}. {start_anew}"
            )
        for name, type_ in old["columns"].items():
            if self.columns.get(name) != type_:
                now = f"has the type {self.columns[name]}" if name in self.columns else "is gone"
                raise CheckpointError(
                    f"normalize_changelog: column {name!r} has the type {type_} in the checkpoint, and now it {now}. "
                    f"Columns may only be added. {start_anew}"
                )

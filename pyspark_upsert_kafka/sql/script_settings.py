"""``SET``: the settings of Flink that mean something here, those that change no result, and those that are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import available_timezones

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.core.options.parsers import one_of, positive_duration, text
from pyspark_upsert_kafka.sql.script import Set

_NO_EFFECT = (
    "parallelism.default", "table.exec.resource.default-parallelism", "table.dml-sync", "table.optimizer.",
    "table.exec.mini-batch.", "table.exec.source.idle-timeout", "table.exec.source.cdc-events-duplicate",
    "table.exec.sink.require-on-conflict", "table.exec.sink.upsert-materialize", "table.exec.sink.keyed-shuffle",
    "execution.checkpointing.", "execution.attached",
    "sql-client.", "state.backend", "taskmanager.", "jobmanager.", "restart-strategy", "pipeline.",
)  # fmt: skip
"""Settings that change how Flink runs a statement, and not its result; or the beginnings of their names."""

_INSTEAD = {
    "table.exec.state.ttl": (
        "in Spark a watermark alone lets state go, and never a group that may still change. Group by windows (TUMBLE, HOP) over a "
        "column with a WATERMARK, and leave this setting out"
    ),
}


@dataclass(frozen=True)
class ScriptSettings:
    """What holds for a statement.

    Args:
        batch: Whether tables are read as of now, and not as streams.
        interval_s: Seconds between the starts of two micro-batches; None = one after another.
        checkpoints: Folder of the checkpoints; None = temporary ones.
        name: Name of the query; None = that of the table it writes.
        time_zone: Time zone of the session; None = as it is.
    """

    batch: bool = False
    interval_s: float | None = None
    checkpoints: str | None = None
    name: str | None = None
    time_zone: str | None = None

    def after(self, statement: Set, begin: ScriptSettings) -> tuple[ScriptSettings, str | None]:
        """The settings after a statement, and a warning, if one is to be logged.

        Args:
            statement: The statement.
            begin: Those with which the script begins, to which ``RESET`` goes back.

        Raises:
            OptionError: The setting is not known, or its value is wrong; the text gives line and column.
        """
        if statement.key is None:
            return begin, None
        name, value, place = statement.key.text, statement.value, statement.key.place
        if name in KNOWN:
            field, read = KNOWN[name]
            if value is None:
                return replace(self, **{field: getattr(begin, field)}), None
            try:
                return replace(self, **{field: read(value)}), None
            except ValueError as error:
                raise place.error(f"'{name}' = '{value}': {error}.") from None
        if name.startswith(_NO_EFFECT):
            return self, f"{place}: '{name}' has no effect in Spark, and changes no result."
        if name in _INSTEAD:
            raise place.error(f"'{name}' is not supported: {_INSTEAD[name]}.")
        raise place.error(f"'{name}' is not known here: known are {', '.join(sorted(KNOWN))}.")

    def in_words(self, place: Place) -> str:
        """What ``SET`` alone shows: the settings that have a value."""
        texts = {
            "execution.runtime-mode": "batch" if self.batch else "streaming",
            "execution.checkpointing.interval": None
            if self.interval_s is None
            else f"{self.interval_s:g} s",
            "execution.checkpointing.dir": self.checkpoints,
            "pipeline.name": self.name,
            "table.local-time-zone": self.time_zone,
        }
        shown = ", ".join(
            f"'{name}' = '{text}'" for name, text in texts.items() if text is not None
        )
        return f"{place}: the settings here are {shown}."


def _runtime_mode(value: str) -> bool:
    return bool(one_of("streaming", "batch")(value) == "batch")


def _time_zone(value: str) -> str | None:
    if value == "default":
        return None
    if value not in available_timezones():
        raise ValueError("expected a time zone such as 'UTC' or 'Europe/Berlin', or 'default'")
    return value


KNOWN: dict[str, tuple[str, Callable[[str], Any]]] = {
    "execution.runtime-mode": ("batch", _runtime_mode),
    "execution.checkpointing.interval": ("interval_s", positive_duration),
    "execution.checkpointing.dir": ("checkpoints", text),
    "state.checkpoints.dir": ("checkpoints", text),
    "pipeline.name": ("name", text),
    "table.local-time-zone": ("time_zone", _time_zone),
}
"""Each setting that means something here: the field of `ScriptSettings`, and how its value is read."""

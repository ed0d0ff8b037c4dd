"""The subject under which the schemas of one side of a topic are registered."""

from __future__ import annotations

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.formats.codec import CodecSpec
from pyspark_upsert_kafka.registry.options import Settings


def subject_of(spec: CodecSpec, settings: Settings) -> str:
    """The given subject, or the one named after the topic and the side.

    Raises:
        OptionError: None is given, and there is not one topic to name it after.
    """
    if settings.subject is not None:
        return settings.subject
    if len(spec.topics) != 1:
        raise OptionError(
            f"Option '{settings.access.option_prefix}subject' is required for more than one topic: the "
            f"default, '<topic>-{spec.side}', would be another one for each."
        )
    return f"{spec.topics[0]}-{spec.side}"

"""The options of the protobuf format: names, meaning and defaults of Flink's ``PbFormatOptions``.

Flink names a generated Java class; here a descriptor file and a message in it take its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import any_text, boolean, text
from pyspark_upsert_kafka.formats.codec import CodecSpec

_FILE_OPTIONS = (
    Option(
        "descriptor-file",
        text,
        None,
        "Required. A file made by `protoc --include_imports --descriptor_set_out`. It is read on the "
        "driver and on every worker, so its path must be readable on all of them.",
    ),
    Option(
        "message-name",
        text,
        None,
        "Required. The message type: its full name (`shop.v1.Order`), or the end of it (`Order`) if no "
        "other message type has the same end.",
    ),
)

VALUE_OPTIONS = (
    Option("ignore-parse-errors", boolean, False, "A message that cannot be read is skipped."),
    Option(
        "read-default-values",
        boolean,
        False,
        "A field that is missing in a message has its default value, not NULL. A proto3 field that is neither `optional` nor "
        "a message always has its default.",
    ),
    Option(
        "write-null-string-literal",
        any_text,
        "",
        "The text that is written for a NULL string in an array or a map, because Protobuf has no NULL there.",
        shown_default="the empty text",
    ),
)
"""Options on how values are read and written, which do not depend on where the message is described."""

OPTIONS = (*_FILE_OPTIONS, *VALUE_OPTIONS)


@dataclass(frozen=True)
class Settings:
    """Where the message of one side is described; see OPTIONS for the meaning."""

    descriptor_file: str
    message_name: str
    prefix: str


def settings_of(spec: CodecSpec) -> Settings:
    """The settings of a side.

    Raises:
        OptionError: A required option is missing.
    """
    value = spec.options
    prefix = f"{spec.side}.protobuf."
    for option in _FILE_OPTIONS:
        if value[option.name] is None:
            raise OptionError(
                f"Option '{prefix}{option.name}' is missing; the protobuf format needs it. {option.help}"
            )
    return Settings(
        descriptor_file=value["descriptor-file"],
        message_name=value["message-name"],
        prefix=prefix,
    )

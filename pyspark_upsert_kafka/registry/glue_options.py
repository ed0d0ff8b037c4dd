"""The options that every format with a registry of AWS Glue has, also under the names that Flink's ``avro-glue`` has for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import any_text, boolean, http_parts, one_of, text
from pyspark_upsert_kafka.formats.codec import CodecSpec
from pyspark_upsert_kafka.registry.glue_request import GlueAccess

_NAME = re.compile(r"[A-Za-z0-9_$#.-]{1,255}")


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError(
            "expected at most 255 letters, digits and characters of '-_$#.', as Glue demands of names"
        )
    return value


def _endpoint(value: str) -> str:
    parts = http_parts(value)
    if parts is None or "@" in value or parts.query or parts.fragment:
        raise ValueError(
            "expected an address such as 'https://vpce-0a1b.glue.eu-central-1.vpce.amazonaws.com', without a user or password"
        )
    return value


_FLINK = {
    "region": "aws.region",
    "endpoint": "aws.endpoint",
    "auto.register.schemas": "schema.autoRegistration",
    "compatibility": "schema.compatibility",
    "compression": "schema.compression",
}
"""What an option is called in Flink's formats."""

# What was given for a URL is not shown: it may hold a password.
_URL_COMPLAINT = "Invalid value for option '{name}': {expected}."

_AUTO, _COMPATIBILITY, _COMPRESSION = False, "BACKWARD", "NONE"
_ZLIB = "ZLIB"

_compatibility = one_of(
    "NONE", "DISABLED", "BACKWARD", "BACKWARD_ALL", "FORWARD", "FORWARD_ALL", "FULL", "FULL_ALL"
)
_compression = one_of(_COMPRESSION, _ZLIB)

OPTIONS = (
    Option("region", text, None,
           "The region of the registry.", shown_default="`AWS_REGION`, or that of the profile"),
    Option("registry.name", _name, "default-registry", "The registry in which schemas are registered and looked up."),
    Option("schema.name", _name, None,
           "The schema of which the schemas of messages are versions, when writing, and when columns are inferred. It is "
           "required for a key beside a value with a registry of Glue.", shown_default="the topic"),
    Option("schema", text, None,
           "Writing: the schema of the messages. Reading: the reader's schema, to which the schema of each message is "
           "resolved; it has no effect for JSON.", shown_default="the one that is derived from the columns"),
    Option("auto.register.schemas", boolean, None,
           "Writing: register a version that is not there, and create the schema if need be; if `false`, it must be there.",
           shown_default="`false`"),
    Option("compatibility", _compatibility, None,
           "Writing: the compatibility of a schema that is created: `NONE`, `DISABLED` (no more versions), `BACKWARD`, "
           "`BACKWARD_ALL`, `FORWARD`, `FORWARD_ALL`, `FULL`, `FULL_ALL`.", shown_default=f"`{_COMPATIBILITY}`"),
    Option("compression", _compression, None,
           "Writing values: `NONE` or `ZLIB`. Reading: each message says how it is.", shown_default=f"`{_COMPRESSION}`"),
    Option("endpoint", _endpoint, None,
           "Address of Glue, if it is not Amazon's public one: that of an endpoint in a VPC.", shown_default="Amazon's", complaint=_URL_COMPLAINT),
    Option("aws.region", text, None, "Flink's name of `region`."),
    Option("aws.endpoint", _endpoint, None, "Flink's name of `endpoint`.", complaint=_URL_COMPLAINT),
    Option("schema.autoRegistration", boolean, None, "Flink's name of `auto.register.schemas`."),
    Option("schema.compatibility", _compatibility, None, "Flink's name of `compatibility`."),
    Option("schema.compression", _compression, None, "Flink's name of `compression`."),
    Option("schema.type", one_of("GENERIC_RECORD"), None,
           "Flink's: taken, and without effect, as is what follows. The other type in Flink is a class of Java.",
           shown_default="`GENERIC_RECORD`"),
    Option("cache.size", any_text, None, "Flink's, without effect: versions never change, and the last 10,000 are kept."),
    Option("cache.ttlMs", any_text, None, "Flink's, without effect."),
)  # fmt: skip


@dataclass(frozen=True)
class GlueSettings:
    """What the options of one side say; see OPTIONS for their meaning."""

    access: GlueAccess
    registry: str
    schema_name: str | None
    schema: str | None
    auto_register: bool
    compatibility: str
    compresses: bool


def settings_of(spec: CodecSpec, format_name: str) -> GlueSettings:
    """The settings of a side that has this format.

    Raises:
        OptionError: Two options contradict each other, nothing says the region, or botocore is not installed.
    """
    prefix = f"{spec.side}.{format_name}."
    value = {name: _either(spec.options, name, prefix) for name in _FLINK}
    access = GlueAccess(prefix, value["region"], value["endpoint"])
    access.check()
    register, compression = value["auto.register.schemas"], value["compression"]
    return GlueSettings(
        access,
        registry=spec.options["registry.name"],
        schema_name=spec.options["schema.name"],
        schema=spec.options["schema"],
        auto_register=_AUTO if register is None else register,
        compatibility=value["compatibility"] or _COMPATIBILITY,
        compresses=compression == _ZLIB,
    )


def _either(value: Mapping[str, Any], name: str, prefix: str) -> Any:
    """The value of an option that has another name in Flink."""
    ours, theirs = value[name], value[_FLINK[name]]
    if ours is not None and theirs is not None and ours != theirs:
        raise OptionError(
            f"'{prefix}{name}' and '{prefix}{_FLINK[name]}' mean the same and differ: leave one out."
        )
    return theirs if ours is None else ours

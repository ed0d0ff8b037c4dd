"""Generates docs/options.md and docs/format-options.md from the declared options: ``make docs``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark_upsert_kafka.connector.format_catalog import FORMATS, format_options
from pyspark_upsert_kafka.core.options.catalog import METADATA_KEYS, SECTIONS, Option
from pyspark_upsert_kafka.formats.json import OPTIONS as JSON_OPTIONS
from pyspark_upsert_kafka.registry.glue_options import OPTIONS as GLUE_OPTIONS
from pyspark_upsert_kafka.registry.options import OPTIONS as REGISTRY_OPTIONS

_HEAD = """\
# Options

<!-- Made by `make docs` from core/options/catalog.py and the formats. Change those, not this page. -->

Options are given by name: `.option("name", "value")` or `.options(**{...})` in Python,
`WITH ('name' = 'value')` in SQL. The case of names does not matter. Names and meanings are Flink's
wherever Flink's `upsert-kafka` has the option, so its `WITH` clause can be pasted.

The options of a format are on [another page](format-options.md).

The same options can be given to the reader and to the writer of a table: an option for the other side is
checked, and has no effect. An option that is unknown, malformed or missing, or that contradicts another, is an
`OptionError` before anything is read or written.
"""

_PROPERTIES = """
## `properties.*`: the Kafka client

Every other `properties.<name>` goes to the Kafka client (librdkafka, or [kafka-python](kafka-python.md)) as
`<name>`. Both the Java client's names and librdkafka's are accepted: see [security](security.md), and for timeouts
[errors](errors.md#brokers-that-do-not-answer). Options that the connector manages are
rejected: (de)serializers, `enable.auto.commit`, `enable.auto.offset.store`, `partitioner`, `partitioner.class`,
`transactional.id`, `enable.partition.eof`, `interceptor.classes`.

A value may be a reference, `${env:NAME}` or `${file:/path/to/file:key}`. It is replaced only where the value is
used, so that no program and no query plan contains the secret.
"""

_METADATA = """
## `metadata.<column>`: metadata under a name of your own

`metadata.<column>` = `<key>` makes a column of the schema show that metadata of the message (Flink's
`METADATA FROM`). Keys: {keys}; `none` makes a column with a reserved name (`_offset`, ...) an ordinary
one. See [reading](reading.md#metadata-columns). [CDC formats](cdc-types.md#metadata) have more keys.
"""

_FORMATS_HEAD = """\
# Options of formats

<!-- Made by `make docs` from the formats. Change those, not this page. -->

Give each option for the side it is meant for, with the name of its format: `key.json.<option>` for the message key,
`value.json.<option>` for the message value. [Formats](formats.md) says which format to choose; `key.format` and
`value.format` are among the [options](options.md) of the connector.
"""

_FORMAT = """
## Format `{name}`
"""

_WITH_REGISTRY = {"avro-confluent": REGISTRY_OPTIONS, "avro-glue": GLUE_OPTIONS}
"""The formats that show the options of a registry, which others have too."""

_LIKE_IT = """
It has the options of {shown} under its own name{end}
"""


def options_page() -> str:
    """The text of docs/options.md."""
    parts = [_HEAD]
    for section in SECTIONS:
        parts += [f"\n## {section.title}\n\n", *_table(section.options)]
    parts.append(_PROPERTIES)
    parts.append(_METADATA.format(keys=", ".join(f"`{k}`" for k in METADATA_KEYS if k != "none")))
    return "".join(parts)


def format_options_page() -> str:
    """The text of docs/format-options.md."""
    parts = [_FORMATS_HEAD]
    for name in FORMATS:
        parts += [_FORMAT.format(name=name), *_format(name)]
    return "".join(parts)


def _format(name: str) -> Iterator[str]:
    options = format_options(name, "value")
    for shown, of_registry in _WITH_REGISTRY.items():
        if name != shown and set(of_registry) <= set(options):
            options = tuple(option for option in options if option not in of_registry)
            like = [shown]
            if options == JSON_OPTIONS:
                like, options = [*like, "json"], ()
            links = " and ".join(f"[`{each}`](#format-{each})" for each in like)
            yield _LIKE_IT.format(shown=links, end=", and these:" if options else ".")
    if options:
        yield "\n"
        yield from _table(options)


def _table(options: Iterable[Option]) -> Iterator[str]:
    yield "| option | default | meaning |\n|---|---|---|\n"
    for option in options:
        yield f"| `{option.name}` | {_default(option)} | {_cell(option.help)} |\n"


def _default(option: Option) -> str:
    if option.shown_default is not None:
        return option.shown_default
    if option.default is None:
        return ""
    text = str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
    return f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    options, of_formats = map(Path, sys.argv[1:])
    options.write_text(options_page(), encoding="utf-8")
    of_formats.write_text(format_options_page(), encoding="utf-8")

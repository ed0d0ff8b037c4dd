"""The text of a ``.proto`` file to its descriptors, by Google's own protoc, which is in the package grpcio-tools.

A schema may also be a descriptor already, in base64: so Confluent's clients for Python and .NET register it, and
some registries hand it out as it came.

Maps may be spelled out in the text of a file, as Java's clients have registered them for years:

.. code-block:: proto

    repeated TagsEntry tags = 2;
    message TagsEntry { option map_entry = true; string key = 1; string value = 2; }

protoc refuses the option, and wants ``map<string, string> tags = 2``. So the option is taken out of the text, and set in what
protoc has made of it.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.formats.protobuf.descriptors import parse
from pyspark_upsert_kafka.formats.protobuf.proto_schema import ProtoSchema, implied_messages
from pyspark_upsert_kafka.formats.registry_format import Reference, RegisteredSchema

_SCHEMA, _DESCRIBED, _OUTPUT = "registered-schema.proto", "described.desc", "files.desc"
_MOST_SAID, _MOST_WORDS = 1_000_000, 2_000
"""So many bytes of what protoc says are read, and so many characters are shown: it may say the name of a message for each field."""

_MOST_MEMORY, _MOST_CPU_S = 1 << 30, 60
"""What protoc may take, in bytes and seconds: a schema of a few megabytes may mean a thousand times as much."""

_LOG_LINE = re.compile(r"WARNING: All log messages|[IW]\d{4} ")


def check_compiler(format_name: str) -> None:
    """Raises an OptionError when there is no compiler."""
    if find_spec("grpc_tools") is None:
        raise OptionError(
            f"The {format_name} format needs a Protobuf compiler: pip install 'pyspark-upsert-kafka[protobuf]'."
        )


def compiled(schema: RegisteredSchema) -> ProtoSchema:
    """A schema with all that it imports: what it refers to, Google's own types, and Confluent's.

    Raises:
        SchemaError: It cannot be compiled.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    found = _compiled(schema.origin, schema.text, schema.references)
    return ProtoSchema(
        schema.origin, FileDescriptorSet.FromString(found.descriptor_set).file, found.implied
    )


@dataclass(frozen=True)
class _Compiled:
    """What protoc has made of a schema: a serialised ``FileDescriptorSet``; and see `ProtoSchema`."""

    descriptor_set: bytes
    implied: frozenset[str]


@lru_cache(maxsize=1_000)
def _compiled(origin: str, text: str, references: tuple[Reference, ...]) -> _Compiled:
    texts = {**_KNOWN_FILES, **{each.name: each.text for each in references}, _SCHEMA: text}
    sources = {
        name: _descriptor(name, each) or without_option(each) for name, each in texts.items()
    }
    found = _compile(sources, origin)
    entries = {
        name: each.entries for name, each in sources.items() if isinstance(each, WithoutOption)
    }
    if any(entries.values()):
        for file in found.file:
            _mark(file, entries.get(file.name, ()))
        # Once more: protoc looks whether they are entries as it makes them.
        found = _compile({file.name: file for file in found.file}, origin)
    is_text = _SCHEMA in entries
    implied = implied_messages(found.file[-1], entries[_SCHEMA]) if is_text else ()
    return _Compiled(found.SerializeToString(), frozenset(implied))


def _compile(sources: Mapping[str, Any], origin: str) -> Any:
    """The ``FileDescriptorSet`` of files and all that they import; a file is a text, or its ``FileDescriptorProto``."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    with TemporaryDirectory(prefix="protoc-") as folder:
        try:
            _write(Path(folder), sources)
        except (OSError, ValueError) as why:
            raise SchemaError(
                f"{origin} refers to files with names that cannot be: {why}."
            ) from None
        _run_protoc(folder, origin)
        return FileDescriptorSet.FromString(Path(folder, _OUTPUT).read_bytes())


def _write(folder: Path, sources: Mapping[str, Any]) -> None:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    described = FileDescriptorSet()
    for name, source in sources.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise ValueError(repr(name))
        if not isinstance(source, WithoutOption):
            described.file.append(source)
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.text, encoding="utf-8", errors="replace")
    (folder / _DESCRIBED).write_bytes(described.SerializeToString())


def _descriptor(name: str, text: str) -> Any:
    """The ``FileDescriptorProto`` in base64, if that is what a text is; the text of a file never is."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    try:
        file = parse(FileDescriptorProto, base64.b64decode(text, validate=True))
    except ValueError:
        return None
    if not file.name:
        return None
    file.name = name
    return file


def _run_protoc(folder: str, origin: str) -> None:
    places = [f"--proto_path={each}" for each in (folder, *_google_files())]
    described = f"--descriptor_set_in={Path(folder, _DESCRIBED)}"
    output = f"--descriptor_set_out={Path(folder, _OUTPUT)}"
    arguments = [*places, described, "--include_imports", output, _SCHEMA]
    # In this process protoc would write to the standard error stream itself.
    child = [sys.executable, "-c", _LIMITED, str(_MOST_MEMORY), str(_MOST_CPU_S), *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        child, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    ) as protoc:
        said = protoc.stderr.read(_MOST_SAID) if protoc.stderr else b""
        if len(said) == _MOST_SAID:
            protoc.kill()
    if protoc.returncode == 0:
        return  # what it may have warned of, as an import that is not used, is ignored by a reader
    text = said.decode(errors="replace")
    lines = [line for line in text.splitlines() if not _LOG_LINE.match(line)]
    if protoc.returncode < 0 and len(said) < _MOST_SAID:
        lines = [f"protoc needs more than {_MOST_MEMORY >> 30} GB or {_MOST_CPU_S} s for it"]
    words = re.sub(f"{re.escape(_SCHEMA)}:(?=[0-9])", "line ", " ".join(lines))
    words = words.replace(f"{folder}/", "").replace(f"{_SCHEMA}: ", "")
    raise SchemaError(f"{origin} is no Protobuf schema that can be used: {words[:_MOST_WORDS]}")


_LIMITED = """\
import runpy, sys

sizes = [int(sys.argv.pop(1)) for _ in range(2)]
try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None
for size, kind in zip(sizes, ("AS", "CPU") if resource else ()):
    limit = getattr(resource, f"RLIMIT_{kind}")
    hard = resource.getrlimit(limit)[1]
    if hard == resource.RLIM_INFINITY or hard > size:
        resource.setrlimit(limit, (size, hard))
runpy.run_module("grpc_tools.protoc", run_name="__main__")
"""
"""The program that runs protoc within limits."""


def _google_files() -> list[str]:
    """Where the files are that every schema may import: ``google/protobuf``, and ``google/type`` if installed."""
    places = []
    for package, above in (("grpc_tools", "_proto"), ("google.type", "../..")):
        found: Any = find_spec(package)
        if found is not None and found.submodule_search_locations:
            places.append(str(Path(next(iter(found.submodule_search_locations)), above).resolve()))
    return places


_META = """\
syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
}
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"""

_DECIMAL = """\
syntax = "proto3";
package confluent.type;
message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
"""

_KNOWN_FILES = {"confluent/meta.proto": _META, "confluent/type/decimal.proto": _DECIMAL}
"""Text by name."""


_Names = tuple[str, ...]
"""The names of a message and of those around it, from outside to inside."""

# A comment or a text that does not end goes to the end of the file, or of the line: protoc refuses it anyway.
_TOKEN = re.compile(
    r"//[^\n]*"
    r"|/\*(?:.*?\*/|.*)"
    r'|"(?:\\.|[^"\\\n])*"?'
    r"|'(?:\\.|[^'\\\n])*'?"
    r"|[A-Za-z_][\w.]*"
    r"|\S",
    re.DOTALL,
)
_COMMENTS = ("//", "/*")
_OPTION = ["option", "map_entry", "="]
_DEEPEST = 100
"""Blocks that stand within each other deeper are not looked into: protoc refuses them."""

_VISIBILITY = ("export", "local")
_LABELS = ("optional", "repeated", "required")


@dataclass(frozen=True)
class WithoutOption:
    """A text without the option, with all else at its place.

    Args:
        text: The text.
        entries: The messages that had it.
    """

    text: str
    entries: frozenset[_Names]


def without_option(text: str) -> WithoutOption:
    """Takes ``option map_entry`` out of a text.

    >>> without_option("message A { message B { option map_entry = true; } }")
    WithoutOption(text='message A { message B {                          } }', entries=frozenset({('A', 'B')}))
    """
    if _OPTION[1] not in text:
        return WithoutOption(text, frozenset())
    found, entries = [], set()
    for option in _options(text):
        found.append((option.start, option.end))
        if option.value == "true":
            entries.add(option.message)
    parts, at = [], 0
    for start, end in found:
        parts += [text[at:start], re.sub(r"[^\n]", " ", text[start:end])]
        at = end
    return WithoutOption("".join([*parts, text[at:]]), frozenset(entries))


@dataclass(frozen=True)
class _Option:
    """An option ``map_entry``, where it stands, and the message that has it."""

    start: int
    end: int
    value: str
    message: _Names


@dataclass
class _Scope:
    """The blocks around a place, each with the name of its message; None = it is another block."""

    blocks: list[str | None] = field(default_factory=list)

    def message(self) -> _Names:
        """The message, for a place directly in it."""
        return tuple(name for name in self.blocks if name is not None)


def _options(text: str) -> Iterator[_Option]:
    scope = _Scope()
    statement: list[str] = []
    start = 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word.startswith(_COMMENTS):
            continue
        is_option = word == ";" and statement[:3] == _OPTION and len(statement) == 4
        if is_option and 0 < len(scope.blocks) <= _DEEPEST:
            yield _Option(start, token.end(), statement[3], scope.message())
        if word == "{":
            scope.blocks.append(_message_name(statement))
        elif word == "}" and scope.blocks:
            scope.blocks.pop()
        if word in ("{", "}", ";"):
            statement = []
            continue
        if not statement:
            start = token.start()
        statement.append(word)


def _message_name(statement: list[str]) -> str | None:
    """The name of the message whose block a statement begins; None = it begins another block."""
    words = (
        statement[1:] if statement[:1] and statement[0] in (*_VISIBILITY, *_LABELS) else statement
    )
    if words[:1] == ["message"] and len(words) == 2:
        return words[1]
    return words[1] if words[:1] == ["group"] and words[2:3] == ["="] else None


def _mark(file: Any, entries: Collection[_Names]) -> None:
    """Sets the option in some messages of a ``FileDescriptorProto``."""
    top = file.message_type if entries else ()
    left: list[tuple[_Names, Any]] = [((message.name,), message) for message in top]
    while left:
        path, message = left.pop()
        if path in entries:
            message.options.map_entry = True
        left += [((*path, inner.name), inner) for inner in message.nested_type]

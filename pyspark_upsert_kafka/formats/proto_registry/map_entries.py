"""Maps whose entries are spelled out in the text of a ``.proto`` file, as Java's clients have registered them for years.

.. code-block:: proto

    repeated TagsEntry tags = 2;
    message TagsEntry { option map_entry = true; string key = 1; string value = 2; }

protoc refuses the option, and wants ``map<string, string> tags = 2``. So the option is taken out of the text, and set in what
protoc has made of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str, ...]
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
    entries: frozenset[Path]


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
    message: Path


@dataclass
class _Scope:
    """The blocks around a place, each with the name of its message; None = it is another block."""

    blocks: list[str | None] = field(default_factory=list)

    def message(self) -> Path:
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


def mark(file: Any, entries: Collection[Path]) -> None:
    """Sets the option in some messages of a ``FileDescriptorProto``."""
    top = file.message_type if entries else ()
    left: list[tuple[Path, Any]] = [((message.name,), message) for message in top]
    while left:
        path, message = left.pop()
        if path in entries:
            message.options.map_entry = True
        left += [((*path, inner.name), inner) for inner in message.nested_type]

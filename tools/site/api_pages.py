"""The pages of the Python API, made from docstrings and signatures as griffe reads them, without importing the package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from griffe import Attribute, Class, DocstringSectionKind, Function, Module, load

from tools.site.api_topics import ALIASES, FOLDER, TOPICS, Topic
from tools.site.contents import SiteError
from tools.site.docstrings import over_lines, with_blocks

PACKAGE = "pyspark_upsert_kafka"

_PARSING = {
    "returns_multiple_items": False,
    "warn_missing_types": False,
    "warn_unknown_params": False,
}
_NAME = re.compile(r"``?(?P<name>[A-Za-z_]\w*)(?:\(\))?``?")
_NEEDS = """
To try the examples, start a Kafka without topics in another window: `python -m pyspark_upsert_kafka local-kafka`. These
lines create {topics} and a session:

```python
import pyspark_upsert_kafka
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

admin = AdminClient({{"bootstrap.servers": "localhost:9092"}})
compacted = {{"cleanup.policy": "compact"}}
topics = [NewTopic(name, 1, config=compacted) for name in {names}]
for created in admin.create_topics(topics).values():
    created.result()

spark = SparkSession.builder.getOrCreate()
```
"""
_NEEDS_SESSION = """
In the examples, `spark` is a session: `spark = SparkSession.builder.getOrCreate()`.
"""
_TOPIC = re.compile(r"""\btopic["']?\s*[=:,]\s*["'](?P<name>[\w.-]+)["']""")
_CODE_OR_HEADING = re.compile(r"(^```.*?^```$|^#[^\n]*$)", re.DOTALL | re.MULTILINE)
_PAGE_OF_DOCS = re.compile(r"\bdocs/(?P<file>[\w-]+\.md)")


@dataclass(frozen=True)
class Api:
    """The package, and where each of its public names is described.

    Args:
        package: The package, as griffe has read it.
        places: The page and the heading of each public name.
    """

    package: Module
    places: Mapping[str, str]

    @classmethod
    def of(cls, root: Path) -> Api:
        """The API of the package in a folder."""
        package = load(
            PACKAGE, search_paths=[root], docstring_parser="google", docstring_options=_PARSING
        )
        if not isinstance(package, Module):
            raise SiteError(f"{PACKAGE} is no module")
        places = {name: f"{topic.file}#{name.lower()}" for topic in TOPICS for name in topic.names}
        return cls(package, places)

    def pages(self) -> dict[str, str]:
        """The text of each page, by its file on the site.

        Raises:
            SiteError: A public name is on no page, or on two, or has no example.
        """
        shown = [name for topic in TOPICS for name in topic.names]
        public = {*(self.package.exports or ())} - {*ALIASES}
        if sorted(shown) != sorted(map(str, public)):
            raise SiteError(
                f"tools/site/api_topics.py and __all__ differ: {sorted({*shown} ^ public)}"
            )
        return {f"{FOLDER}/{topic.file}": self.page(topic) for topic in TOPICS}

    def page(self, topic: Topic) -> str:
        """The text of one page."""
        described = "\n".join(self._described(name) for name in topic.names)
        needs = _needs(described)
        return f"# {topic.title}\n\nThis page describes {topic.summary}.\n{needs}\n{described}"

    def _described(self, name: str) -> str:
        documented = self.package[name]
        described = documented.final_target if documented.is_alias else documented
        also = [alias for alias, of in ALIASES.items() if of == name]
        parts = [f"## {name}\n", _signature(described), *self._docstring(described)]
        parts += [f"Spark knows it as `{alias}` too.\n" for alias in also]
        if isinstance(described, Class):
            parts += self._members(described)
        return self._linked("\n".join(parts), name)

    def _members(self, described: Class) -> Iterator[str]:
        """Properties and methods, but for the methods that a class of Spark's calls."""
        bases = (str(getattr(base, "canonical_path", base)) for base in described.bases)
        is_sparks = any(base.startswith("pyspark.") for base in bases)
        for name, member in described.members.items():
            if name.startswith("_") or member.docstring is None:
                continue
            if isinstance(member, Attribute):
                yield f"### {described.name}.{name}\n"
                yield f"Type: `{member.annotation}`\n" if member.annotation else ""
                yield from self._docstring(member)
            elif isinstance(member, Function) and not is_sparks:
                yield f"### {described.name}.{name}\n"
                yield _signature(member)
                yield from self._docstring(member)

    def _docstring(self, described: Class | Function | Attribute) -> Iterator[str]:
        if described.docstring is None:
            raise SiteError(f"{described.path} has no docstring")
        for section in described.docstring.parsed:
            match section.kind:
                case DocstringSectionKind.text:
                    yield with_blocks(section.value) + "\n"
                case DocstringSectionKind.parameters:
                    yield "**Arguments**\n"
                    yield _items((f"`{each.name}`", each.description) for each in section.value)
                case DocstringSectionKind.returns:
                    yield "**Returns**\n"
                    yield "\n".join(_one_line(each.description) for each in section.value) + "\n"
                case DocstringSectionKind.raises:
                    yield "**Raises**\n"
                    yield _items(
                        (f"`{each.annotation}`", each.description) for each in section.value
                    )
                case kind:
                    raise SiteError(f"{described.path}: no page shows a section {kind.value!r}")

    def _linked(self, text: str, page_of: str) -> str:
        """With links to the public names and pages that the text names, but not in code and headings."""
        here = self.places[page_of].partition("#")[0]

        def link(found: re.Match[str]) -> str:
            place = self.places.get(found["name"])
            if place is None or found["name"] == page_of:
                return f"`{found[0].strip('`')}`"
            return f"[`{found[0].strip('`')}`]({place.removeprefix(here)})"

        parts = _CODE_OR_HEADING.split(text)
        for place in range(0, len(parts), 2):
            linked = _NAME.sub(link, parts[place])
            parts[place] = _PAGE_OF_DOCS.sub(r"[docs/\g<file>](../\g<file>)", linked)
        return "".join(parts)


def _needs(described: str) -> str:
    """What a reader does before the examples of a page: the lines that make their topics, or a session alone."""
    topics = sorted({*_TOPIC.findall(described)}) if "localhost:9092" in described else []
    if not topics:
        return _NEEDS_SESSION if re.search(r"\bspark\.", described) else ""
    names = ", ".join(f'"{name}"' for name in topics)
    number = "the topic" if len(topics) == 1 else "the topics"
    return _NEEDS.format(topics=number, names=f"[{names}]")


def _signature(described: Class | Function) -> str:
    """The call of a function or a class. An error without a constructor of its own has none."""
    signature = described.signature(return_type=isinstance(described, Function))
    return f"```python\n{over_lines(signature)}\n```\n" if signature else ""


def _items(items: Iterable[tuple[str, str]]) -> str:
    return "".join(f"- {name}: {_one_line(text)}\n" for name, text in items)


def _one_line(text: str) -> str:
    return " ".join(text.split())

"""The pages of the Python API: the public names by what they are for, made from docstrings and signatures.

Griffe reads these, without importing the package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from griffe import Attribute, Class, DocstringSectionKind, Function, Module, load

from tools.site.pages import Group, Page, SiteError

GROUP = "Python API"
FOLDER = "api"
BEFORE_IT = "Reference"
"""The group of pages after which those of the API stand."""

ALIASES = {"DefaultSource": "UpsertKafkaDataSource"}
"""Names that are on no page: Spark's own names for what has another one."""


@dataclass(frozen=True)
class Topic:
    """A page of the API.

    Args:
        title: Its heading.
        file: Its file on the site, without the folder.
        summary: What it is about, in one line.
        names: What is on it, in this order.
    """

    title: str
    file: str
    summary: str
    names: tuple[str, ...]

    @property
    def page(self) -> Page:
        """Its place on the site. It has no file in the repository."""
        path = f"{FOLDER}/{self.file}"
        return Page(self.title, path, path, self.summary)


TOPICS = (
    Topic(
        "Read a table",
        "reading.md",
        "the format of spark.read and spark.readStream, and tables without Spark",
        ("UpsertKafkaDataSource", "read_table", "read_changes", "TableChanges", "watermark_of"),
    ),
    Topic(
        "Write",
        "writing.md",
        "functions for foreachBatch: into a topic, and into a table of Iceberg or Delta Lake",
        ("upsert_sink", "merge_sink"),
    ),
    Topic(
        "Changes as rows",
        "changes.md",
        "rows before and after each change, and the last change of each key",
        ("normalize_changelog", "last_changes"),
    ),
    Topic("Flink SQL", "sql.md", "scripts of Flink SQL", ("run_sql",)),
    Topic(
        "Watch queries",
        "monitoring.md",
        "lag, rows and bad messages, and why a query has ended",
        ("ProgressListener", "why_it_ended"),
    ),
    Topic(
        "Kafka for tests",
        "testing.md",
        "a real Kafka on this machine, with users, certificates and ACLs",
        ("LocalKafka", "LocalSecurity", "LocalAcl", "LocalCertificates"),
    ),
    Topic(
        "Errors",
        "errors.md",
        "what is raised, and the fields of each error",
        (
            "UpsertKafkaError",
            "OptionError",
            "SchemaError",
            "SchemaChangedError",
            "DecodeError",
            "EncodeError",
            "DeliveryError",
            "RetriableDeliveryError",
            "DataLossError",
            "CheckpointError",
            "BrokerError",
            "RetriableBrokerError",
            "UnknownTopicError",
        ),
    ),
)


def with_api(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """The groups of pages, with the API in its place; at the end, if no group of that name is there."""
    api = Group(GROUP, tuple(topic.page for topic in TOPICS))
    titles = [group.title for group in groups]
    place = titles.index(BEFORE_IT) + 1 if BEFORE_IT in titles else len(groups)
    return (*groups[:place], api, *groups[place:])


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
            raise SiteError(f"tools/site/api.py and __all__ differ: {sorted({*shown} ^ public)}")
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


_WIDTH = 88
_PROGRAM = re.compile(r"^Example::\n\n(?P<code>(?: {4}.*(?:\n|\Z)|\n(?= {4}|\n))+)", re.MULTILINE)
_SESSION = re.compile(r"^>>> .*(?:\n|\Z)(?:.+(?:\n|\Z))*", re.MULTILINE)
_TITLE = "**Example**"
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def with_blocks(text: str) -> str:
    """The text of a docstring with its examples as blocks of code.

    Args:
        text: Paragraphs, ``Example::`` with indented code, and sessions of ``>>>``.
    """
    text = _PROGRAM.sub(lambda found: f"{_TITLE}\n\n{_block(found['code'])}\n", text)
    parts = _FENCED.split(text)
    title = "" if len(parts) > 1 else f"{_TITLE}\n\n"
    parts[::2] = [
        _SESSION.sub(lambda found: f"{title}{_block(found[0])}\n", part) for part in parts[::2]
    ]
    return "".join(parts).strip()


def _block(code: str) -> str:
    code = dedent(code).strip()
    language = "pycon" if code.startswith(">>> ") else "python"
    return f"```{language}\n{code}\n```"


def examples(docstring: str) -> list[str]:
    """The programs in a docstring. Sessions of ``>>>`` are left out, because doctest runs them."""
    codes = [dedent(found["code"]).strip() for found in _PROGRAM.finditer(docstring)]
    return [f"{code}\n" for code in codes if not code.startswith(">>> ")]


def has_example(docstring: str) -> bool:
    """Whether a docstring has a program or a session of ``>>>``."""
    return bool(_PROGRAM.search(docstring) or _SESSION.search(docstring))


def over_lines(signature: str) -> str:
    """A signature, with a line for each parameter if it is long.

    Args:
        signature: What is called, with its parameters and what it returns.
    """
    name, bracket, rest = signature.partition("(")
    if len(signature) <= _WIDTH:
        return signature
    end = _end_of_parameters(rest)
    lines = "".join(f"    {each},\n" for each in _parameters(rest[:end]))
    return f"{name}{bracket}\n{lines}{rest[end:]}"


def _end_of_parameters(rest: str) -> int:
    depth = 0
    for place, char in enumerate(rest):
        if char == ")" and depth == 0:
            return place
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
    return len(rest)


def _parameters(text: str) -> list[str]:
    """The parameters of a signature; a comma in brackets or in a text does not end one."""
    parts = re.findall(r"(?:\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]|\([^()]*\)|'[^']*'|[^,])+", text)
    return [part.strip() for part in parts]

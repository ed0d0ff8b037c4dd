"""Docstrings as Markdown, and the examples in them."""

from __future__ import annotations

import re
from textwrap import dedent

_WIDTH = 88
_EXAMPLE = re.compile(r"^Example::\n\n(?P<code>(?: {4}.*(?:\n|\Z)|\n(?= {4}|\n))+)", re.MULTILINE)
_SESSION = re.compile(r"^>>> .*(?:\n|\Z)(?:.+(?:\n|\Z))*", re.MULTILINE)
_TITLE = "**Example**"
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def with_blocks(text: str) -> str:
    """The text of a docstring with its examples as blocks of code.

    Args:
        text: Paragraphs, ``Example::`` with indented code, and sessions of ``>>>``.
    """
    text = _EXAMPLE.sub(lambda found: f"{_TITLE}\n\n{_block(found['code'])}\n", text)
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
    codes = [dedent(found["code"]).strip() for found in _EXAMPLE.finditer(docstring)]
    return [f"{code}\n" for code in codes if not code.startswith(">>> ")]


def has_example(docstring: str) -> bool:
    """Whether a docstring has a program or a session of ``>>>``."""
    return bool(_EXAMPLE.search(docstring) or _SESSION.search(docstring))


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

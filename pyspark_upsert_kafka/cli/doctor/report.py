"""How findings are printed: a line of text for each, or of JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence

from pyspark_upsert_kafka.cli.doctor.finding import Finding, Level
from pyspark_upsert_kafka.cli.terminal import write_text
from pyspark_upsert_kafka.core.errors import printable

_SYMBOLS = {
    Level.OK: ("✓", "+"),
    Level.NOT_CHECKED: ("-", "-"),
    Level.WARNING: ("!", "!"),
    Level.ERROR: ("✗", "x"),
}
"""For a standard output that has the character, and for another."""

_WORDS = {
    Level.OK: "ok",
    Level.NOT_CHECKED: "not checked",
    Level.WARNING: "warning",
    Level.ERROR: "error",
}


def write_finding(finding: Finding, output: str) -> None:
    """Writes a finding in the form that ``--output`` names."""
    write_text(f"{json_line(finding) if output == 'json' else _shown(text_line(finding))}\n")


def write_summary(findings: Sequence[Finding], output: str) -> None:
    """Writes the last line, which JSON does not have."""
    if output != "json":
        write_text(f"\n{summary(findings)}\n")


def json_line(finding: Finding) -> str:
    """A finding as an object.

    >>> json_line(Finding("tombstones", Level.OK, "Kept.", topic="users"))
    '{"check": "tombstones", "level": "ok", "topic": "users", "text": "Kept.", "advice": ""}'
    """
    return json.dumps(
        {
            "check": finding.check,
            "level": finding.level.value,
            "topic": finding.topic,
            "text": finding.text,
            "advice": finding.advice,
        }
    )


def text_line(finding: Finding) -> str:
    """A finding as a line.

    >>> text_line(Finding("rights", Level.ERROR, "The user may not read", "kafka-acls.sh --add"))
    '✗ error        rights                 The user may not read. What to do: kafka-acls.sh --add'
    """
    symbol, _ = _SYMBOLS[finding.level]
    advice = f". What to do: {finding.advice}" if finding.advice else ""
    text = " ".join(f"{finding.text}{advice}".split())
    return printable(f"{symbol} {_WORDS[finding.level]:<12} {finding.check:<22} {text}")


def summary(findings: Sequence[Finding]) -> str:
    """How many findings there are of each level, the worst first.

    >>> summary([Finding("a", Level.OK, ""), Finding("b", Level.WARNING, ""), Finding("c", Level.OK, "")])
    '1 warning, 2 ok.'
    """
    counts = Counter(finding.level for finding in findings)
    words = {Level.ERROR: "error", Level.WARNING: "warning"}
    parts = [
        f"{counts[level]} {word}" if counts[level] == 1 else f"{counts[level]} {word}s"
        for level, word in words.items()
        if counts[level]
    ]
    parts += [
        f"{counts[each]} {_WORDS[each]}" for each in (Level.NOT_CHECKED, Level.OK) if counts[each]
    ]
    return f"{', '.join(parts)}."


def _shown(line: str) -> str:
    """The line in characters that standard output has."""
    encoding = sys.stdout.encoding
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        for symbol, plain in _SYMBOLS.values():
            line = line.replace(symbol, plain, 1) if line.startswith(symbol) else line
        return line.encode(encoding, "backslashreplace").decode(encoding)
    return line

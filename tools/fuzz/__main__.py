"""`make fuzz`: every format reads random messages, good and bad, by all its paths; the paths must agree.

Each round generates random columns and options of a format, encodes messages of rows with our own encoder and with other writers,
spoils some of them, and checks the laws in `laws.py`. A failure (a *find*) is reduced to a small case, and printed with a program that
reproduces it. Everything depends only on the seed: `make fuzz ARGS="json --seed 7 --first 812 --messages 1"` repeats round 812.

Each format runs in a separate process, so a crash is a find too, and so is a round that takes ten minutes. The last line is the
verdict. The exit code is 0 only if nothing was found.

Differences that are intended are avoided, because the generator does not make such messages, or because the other implementation is not
compared:

- JSON: Python's json accepts lone surrogates and numbers out of range, so it is compared only for values of JSON's own types
  (`json_cases.py`). Python's csv is compared only for texts without line breaks, with quotes only around whole fields
  (`csv_cases.py`).
- fastavro accepts longer numbers, other booleans and other blocks than the specification allows. If it would encode a message
  differently, only the values are compared (`avro_cases.py`).
- In keys -0.0 is 0.0, and there is only one NaN, so that equal keys have equal bytes.
- With `read-default-values` every member of a oneof has a value, but only one of them can be written (`proto_cases.py`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO

from tools.fuzz.rounds import SUBJECTS

MESSAGES = 2_000_000
_PATIENCE = 600
"""Seconds that one round may take."""

_FINDS = 20
"""So many finds end a format's run."""


@dataclass
class Run:
    """How far the messages of a format have come."""

    subject: str
    seed: int
    next: int
    messages: int = 0
    finds: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    running: bool = False


def run(subject: str, seed: int, first: int, wanted: int, folder: Path | None) -> Run:
    """Runs a format until so many messages were read; a process that ends is followed by another one."""
    state = Run(subject, seed, first)
    while state.messages < wanted and state.finds < _FINDS:
        with subprocess.Popen(_child(state, wanted), stdout=subprocess.PIPE, text=True) as child:
            _follow(child, state, folder)
    return state


def _child(state: Run, wanted: int) -> list[str]:
    numbers = (state.seed, state.next, wanted - state.messages)
    return [sys.executable, "-m", "tools.fuzz.child", state.subject, *map(str, numbers)]


def _follow(child: subprocess.Popen[str], state: Run, folder: Path | None) -> None:
    lines: Queue[str | None] = Queue()
    Thread(target=_lines, args=(child.stdout, lines), daemon=True).start()
    try:
        while state.finds < _FINDS and (line := lines.get(timeout=_PATIENCE)) is not None:
            _heard(json.loads(line), state, folder)
        ended = "ends"
    except Empty:
        ended = f"takes longer than {_PATIENCE} seconds"
    finally:
        child.kill()
        code = child.wait()
    if state.running and state.finds < _FINDS:
        text = f"the process {ended} in this round, with code {code}"
        _found(state, {"law": "no message ends the process", "text": text}, folder)
        state.next += 1


def _lines(source: IO[str] | None, lines: Queue[str | None]) -> None:
    for line in source or ():
        lines.put(line)
    lines.put(None)


def _heard(said: dict[str, object], state: Run, folder: Path | None) -> None:
    if "begins" in said:
        state.next, state.running = int(str(said["begins"])), True
        return
    state.messages += int(str(said["messages"]))
    if "note" in said:
        state.notes[str(said["note"])] += 1
    if "law" in said:
        _found(state, said, folder)
    state.next, state.running = state.next + 1, False


def _found(state: Run, said: dict[str, object], folder: Path | None) -> None:
    state.finds += 1
    state.running = False
    kind = str(said.get("kind", said["law"]))
    state.kinds[kind] += 1
    name = f"{state.subject} --seed {state.seed} --first {state.next}"
    print(f"\nFOUND by {name}\n{said['law']}: {said['text']}\n", flush=True)
    program = str(said.get("program", f"# python -m tools.fuzz {name} --messages 1"))
    if state.kinds[kind] == 1:
        print(program if len(program) < 8_000 else f"{program[:8_000]} ...", flush=True)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{state.subject}_{state.seed}_{state.next}.py").write_text(program)


def main(arguments: list[str]) -> int:
    """Runs the formats that are asked for; returns the exit code."""
    parser = argparse.ArgumentParser(
        "tools.fuzz", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument(
        "formats", nargs="*", metavar="FORMAT", help=f"of {', '.join(SUBJECTS)}; all by default"
    )
    parser.add_argument("--messages", type=int, default=MESSAGES, help="of each format")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    parser.add_argument("--programs", type=Path, help="a folder for the programs of finds")
    given = parser.parse_args(arguments)
    if unknown := {*given.formats} - {*SUBJECTS}:
        parser.error(f"no format {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")
    finds = 0
    for subject in given.formats or SUBJECTS:
        began = time.monotonic()
        state = run(subject, given.seed, given.first, given.messages, given.programs)
        seconds = time.monotonic() - began
        rounds = state.next - given.first
        notes = "".join(f"; {count} x {note}" for note, count in state.notes.items())
        print(
            f"fuzz: {subject}: {state.messages} messages in {rounds} rounds, {seconds:.0f} s, {state.finds} finds{notes}",
            flush=True,
        )
        finds += state.finds
    print(f"fuzz: {'FAILED' if finds else 'PASSED'} {finds} finds", flush=True)
    return bool(finds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

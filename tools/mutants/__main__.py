"""`make mutants`: are small mistakes noticed by the unit tests?

Of all small mistakes that can be made in the core, in what reads and writes a table, and in what fetches from Kafka, 150 are chosen: a
comparison that is off by one, a check or a call that is missing, another number. Each is made in a copy of the tree, and the unit tests that are nearest
to the module run. A mistake that they do not notice survives. The last line is the verdict: at least 95 % must be noticed. Those that
change nothing are in `equivalent.py`, with the reason, and do not count.

`make mutants SEED=7` chooses others, and `ARGS="core/positions"` only in that folder; `ARGS=--list` shows them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from tools.mutants.equivalent import EQUIVALENT, Equivalent
from tools.mutants.mutations import Mutation, chosen, mutations_of
from tools.mutants.nearest import PACKAGE, Nearest
from tools.mutants.trial import Copy, Ended, MutantsError
from tools.verdict import Held, verdict

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "core",
    "connector/planning",
    "connector/reading",
    "connector/writing",
    "connector/bad_messages.py",
    "connector/dead_letter_replay.py",
    "kafka/loss_checks.py",
    "kafka/pooled_reader.py",
    "kafka/range_fetch.py",
    "kafka/raw_batch.py",
)
"""Or modules."""
SEED = 1
COUNT = 150
NOTICED = 0.95


def main(arguments: Sequence[str]) -> int:
    """Prints the table and the verdict."""
    asked = _asked(arguments)
    every = every_mutation(ROOT, asked.folders)
    some = chosen(every, asked.count, asked.seed)
    if asked.list:
        print(*some, sep="\n")
        return 0
    about = f" (of {len(every)}, seed {asked.seed})"
    return verdict("mutants", lambda: proof(ROOT, some, EQUIVALENT, asked.jobs), about)


def every_mutation(
    root: Path, folders: Sequence[str], before: Container[str] | None = None
) -> list[Mutation]:
    """All mutations of some folders of the package, or those of code like this; a folder may be a module."""
    package = root / PACKAGE
    modules = sorted(
        {
            path
            for folder in folders
            for path in (package / folder, *(package / folder).rglob("*.py"))
            if path.is_file()
        }
    )
    return [
        each
        for path in modules
        for each in mutations_of(path.read_text(), str(path.relative_to(package)), before)
    ]


def proof(
    root: Path, mutations: Sequence[Mutation], equivalent: Sequence[Equivalent], jobs: int = 2
) -> Held:
    """Tries each mutation, and says how many are noticed."""
    same = {(each.module, each.before, each.after) for each in equivalent}
    tried = [each for each in mutations if (each.module, each.before, each.after) not in same]
    ended, wrong = _ended(root, tried, jobs)
    survivors = [each for each in tried if not ended[each].how]
    for each in mutations:
        how = (ended[each].how or "SURVIVED") if each in ended else "the same"
        print(f"{how:10} {each.kind:15} {each}")
    for each in survivors:
        print(f"survivor: {each}")
    if wrong:
        raise MutantsError(f"{wrong} fails without a mutation too")
    rate = 1 - len(survivors) / max(1, len(tried))
    said = (
        f"{len(tried) - len(survivors)} of {len(tried)} mutations are noticed, {rate:.1%}; "
        f"{len(mutations) - len(tried)} more change nothing"
    )
    if rate < NOTICED:
        raise MutantsError(said)
    return Held(said)


def _ended(
    root: Path, tried: Sequence[Mutation], jobs: int
) -> tuple[Mapping[Mutation, Ended], str]:
    """How each mutation was noticed, and a test that has noticed one and fails without it too."""
    nearest = Nearest(root)
    near = {each.module: nearest.of(each.module) for each in tried}

    def ended(mutation: Mutation) -> Ended:
        tests = near[mutation.module]
        with _borrowed(copies) as copy:
            found = copy.tried(mutation, tests) if tests else Ended("")
        print(f"mutants: {found.how or 'SURVIVED'}: {mutation}", file=sys.stderr, flush=True)
        return found

    with _copies(root, jobs) as copies:
        with ThreadPoolExecutor(jobs) as threads:
            all_ended = dict(zip(tried, threads.map(ended, tried), strict=True))
        files = sorted({test for tests in near.values() for test in tests})
        failing = sorted({each.test for each in all_ended.values() if "::" in each.test})
        with _borrowed(copies) as copy:
            without = [copy.run(some) for some in (["--collect-only", *files], failing) if some]
    return all_ended, ", ".join(each.test or each.how for each in without if each.how)


@contextmanager
def _copies(root: Path, jobs: int) -> Iterator[SimpleQueue[Copy]]:
    copies: SimpleQueue[Copy] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(jobs):
            (place := Path(folder) / str(number)).mkdir()
            copies.put(Copy(root, place))
        try:
            yield copies
        finally:
            while not copies.empty():
                copies.get().close()


@contextmanager
def _borrowed(copies: SimpleQueue[Copy]) -> Iterator[Copy]:
    copy = copies.get()
    try:
        yield copy
    finally:
        copies.put(copy)


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args(arguments)
    for folder in given.folders:
        if not (ROOT / PACKAGE / folder).exists():
            parser.error(f"{PACKAGE} has no folder or module {folder}; give one as core/positions")
    return given


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

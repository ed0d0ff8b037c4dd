"""`make test-notebooks`: runs the notebooks in ``examples`` in a kernel, as Jupyter does.

Each must run to its end, and each cell must print what the notebook shows below it. ``ARGS=--write`` shows below the cells
what they print now. ``ARGS="debezium"`` runs only notebooks with this word in their name. What is written to standard error
(Spark's warnings) is not shown. Spark and brokers start as in tests (`tests.fast_start`), unless ``PLAIN_TESTS`` is set.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from tests import fast_start

EXAMPLES = Path(__file__).parents[1] / "examples"
CELL_SECONDS = 600


def shown(notebook: NotebookNode) -> list[str]:
    """What each cell of code shows: its standard output, and the value of its last line."""
    return [
        "".join(_text(output) for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _text(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return str(output.text) if output.name == "stdout" else ""
    return str(output.get("data", {}).get("text/plain", ""))


def executed(notebook: NotebookNode) -> NotebookNode:
    """The notebook after all its cells have run, in a kernel that has started for them.

    Raises:
        CellExecutionError: A cell has failed.
    """
    ran = deepcopy(notebook)
    where = {"metadata": {"path": str(EXAMPLES)}}
    NotebookClient(ran, timeout=CELL_SECONDS, resources=where).execute()
    return ran


def with_outputs(notebook: NotebookNode, ran: NotebookNode) -> NotebookNode:
    """The notebook with the outputs of a run, without what differs from run to run."""
    written = deepcopy(notebook)
    for cell, after in zip(written.cells, ran.cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs = [_fixed(output) for output in after.outputs if _text(output)]
    return written


def _fixed(output: NotebookNode) -> NotebookNode:
    if output.output_type == "execute_result":
        output.execution_count = None
    return output


def differences(notebook: NotebookNode, ran: NotebookNode) -> list[str]:
    """The cells that print something else than the notebook shows."""
    cells = zip(shown(notebook), shown(ran), strict=True)
    return [
        f"the notebook shows\n{before}\nbut the cell has printed\n{after}"
        for before, after in cells
        if before != after
    ]


def check(file: Path, *, write: bool) -> list[str]:
    """Runs a notebook; returns what is wrong with it."""
    notebook = nbformat.read(file, as_version=4)
    try:
        ran = executed(notebook)
    except CellExecutionError as error:
        return [str(error)]
    if write:
        nbformat.write(with_outputs(notebook, ran), file)
        return []
    return differences(notebook, ran)


def main(arguments: Sequence[str]) -> int:
    """Runs the notebooks, and prints what is wrong with each; returns the exit code."""
    parser = argparse.ArgumentParser("python -m tools.notebooks", description=__doc__)
    parser.add_argument("name", nargs="?", default="", help="a word in the name of a notebook")
    parser.add_argument("--write", action="store_true", help="write what is printed")
    given = parser.parse_args(arguments)
    os.environ.update(fast_start.settings(os.environ))
    files = sorted(file for file in EXAMPLES.glob("*.ipynb") if given.name in file.stem)
    wrong = {file.name: check(file, write=given.write) for file in files}
    for name, found in wrong.items():
        print(f"notebooks: {name} {'FAILED' if found else 'passed'}", *found, sep="\n")
    return int(not files or any(wrong.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

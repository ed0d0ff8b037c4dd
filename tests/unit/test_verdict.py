"""The verdict of a long test, for people and for `make proof`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.verdict import Held, verdict


def test_a_verdict_is_said_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line is for people, the file for the proof; an error of any kind is a failure."""

    def wrong() -> Held:
        raise ValueError("a row is lost")

    monkeypatch.setenv("PROOF_FOLDER", str(tmp_path))
    codes = [
        verdict("kills", lambda: Held("all is there", {"drivers killed": 3})),
        verdict("soak", wrong, " (seed 7)"),
    ]
    kept = [
        json.loads((tmp_path / "verdicts" / f"{name}.json").read_text())
        for name in ("kills", "soak")
    ]

    assert codes == [0, 1]
    assert capsys.readouterr().out.splitlines() == [
        "kills: PASSED all is there",
        "soak: FAILED ValueError: a row is lost (seed 7)",
    ]
    assert [(each["passed"], each["faults"]) for each in kept] == [
        (True, {"drivers killed": 3}),
        (False, {}),
    ]


def test_without_a_proof_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make kills` by itself leaves no files."""
    monkeypatch.delenv("PROOF_FOLDER", raising=False)
    monkeypatch.chdir(tmp_path)

    assert verdict("kills", lambda: Held("all is there")) == 0
    assert list(tmp_path.iterdir()) == []

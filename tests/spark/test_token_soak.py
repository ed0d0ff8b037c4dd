"""As many renewals of tokens as an hour has, in some minutes: nothing is lost, and nothing is written twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.signed_tokens import ENVIRONMENT
from tests.spark.test_recovery_kill import ROOT

RENEWALS = int(os.environ.get("TOKEN_RENEWALS", "120"))
"""An hour of tokens that live for 30 seconds: each is renewed after 24."""

LIFE_S = 6


@pytest.mark.classic("starts a cluster of its own")
@pytest.mark.long("waits until tokens are renewed many times")
def test_a_copy_over_many_renewals(tmp_path: Path) -> None:
    """It has each message once, for readers of what is committed; no token is logged, and at most a line for each renewal."""
    environment = {
        **os.environ,
        **ENVIRONMENT,
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.token_soak", str(tmp_path), str(RENEWALS), str(LIFE_S)],
        cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    state, counted = done.stdout.splitlines()[-2:]
    renewals, messages, lacking, twice = map(int, re.findall(r"\d+", counted))
    logs = [done.stderr, *(file.read_text() for file in tmp_path.glob("work/**/stderr"))]
    said = [line for log in logs for line in log.splitlines() if re.search("SASL|token", line)]

    assert (state, lacking, twice) == ("still running", 0, 0)
    assert renewals > RENEWALS
    assert messages > 10 * RENEWALS
    assert len(said) <= renewals, said[:20]
    files = [file for file in tmp_path.rglob("*") if file.is_file() and "local" not in file.parts]
    assert not [str(file) for file in files if b"eyJhbGciOi" in file.read_bytes()]
    assert "eyJhbGciOi" not in done.stdout + done.stderr

"""Logins by tokens in a Spark job: a sink, a stream and `read_table`, for longer than a token lives."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.given_tokens import ENVIRONMENT

ROWS = [(0, "2"), (1, "2"), (2, "2")]


@pytest.mark.classic("starts a session of its own")
@pytest.mark.long("waits until tokens expire")
@pytest.mark.parametrize(
    ("client", "how"),
    [(client, how) for client in ("librdkafka", "kafka-python") for how in ("classic", "connect")],
)
def test_a_job_that_logs_in_by_tokens(client: str, how: str, tmp_path) -> None:
    """Tasks run in processes of their own, each with its token; none is in a log, Spark's event log, a plan, a checkpoint or an error."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.token_job", client, how, str(tmp_path)],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == [str(ROWS), str(ROWS)]
    assert "Physical Plan" in done.stdout
    assert "eyJ" not in done.stdout + done.stderr
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert [content for content in written if b"SparkListenerSQLExecutionStart" in content]
    assert not [content for content in written if b"eyJ" in content]

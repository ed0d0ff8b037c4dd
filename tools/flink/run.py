"""Runs Flink SQL in a separate Flink: statements from standard input, one after another.

Runs under .venv-flink (`make .venv-flink/.ready`), which has PyFlink and nothing of this project. Each statement ends with
a semicolon at the end of a line. The program waits for each job and prints its time.

    .venv-flink/bin/python tools/flink/run.py NAME=VALUE... JAR... < statements.sql
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment


def main(*arguments: str) -> None:
    """Runs the statements; the first that fails ends the program."""
    jars = [argument for argument in arguments if "=" not in argument]
    settings = Configuration()
    for argument in arguments:
        if "=" in argument:
            settings.set_string(*argument.split("=", 1))
    settings.set_string("pipeline.jars", ";".join(Path(jar).as_uri() for jar in jars))
    settings.set_string("table.local-time-zone", "UTC")
    builder = EnvironmentSettings.new_instance().in_streaming_mode()
    table = TableEnvironment.create(builder.with_configuration(settings).build())
    for statement in filter(str.strip, sys.stdin.read().split(";\n")):
        result = table.execute_sql(statement)
        result.wait()
        job = result.get_job_client()
        if job is not None:
            print("took-ms", job.get_job_execution_result().result().get_net_runtime())


if __name__ == "__main__":
    main(*sys.argv[1:])

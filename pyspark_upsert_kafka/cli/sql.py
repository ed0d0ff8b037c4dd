"""Run a script of Flink's SQL without changes to it.

The whole script is checked before any statement runs. Its streams run until Ctrl-C, and print a line for each micro-batch.

For example:
  python -m pyspark_upsert_kafka sql page_views.sql
  python -m pyspark_upsert_kafka sql page_views.sql --checkpoint /var/checkpoints/page_views
  python -m pyspark_upsert_kafka sql page_views.sql --set properties.bootstrap.servers=localhost:9092 --timeout 60
  python -m pyspark_upsert_kafka sql report.sql --mode batch
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_upsert_kafka.cli.arguments import add_option_argument, text_of
from pyspark_upsert_kafka.cli.local_spark import local_spark
from pyspark_upsert_kafka.cli.terminal import echo, ended_by_signals, interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pyspark_upsert_kafka.sql.script_compiler import CompiledScript


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``sql``."""
    add = parser.add_argument
    add("file", metavar="FILE.sql", help="file with the script; - reads standard input")
    add_option_argument(
        parser,
        "--set",
        "an option for each table of the script; it wins over the table's own; may be repeated",
    )
    add(
        "--mode",
        choices=["streaming", "batch"],
        help="default: SET 'execution.runtime-mode' in the script, or streaming",
    )
    add("--timeout", metavar="SECONDS", type=float, help="stop the streams after this time")
    add(
        "--checkpoint",
        metavar="FOLDER",
        help="folder for the checkpoints of streams; default: SET 'execution.checkpointing.dir' in the script",
    )
    add(
        "--spark-log",
        metavar="FILE",
        type=Path,
        default=Path(os.devnull),
        help="file for Spark's own log (default: discarded)",
    )


def run(given: argparse.Namespace) -> None:
    """Runs the script.

    Raises:
        OptionError: A statement is not understood, or Spark cannot run it correctly; it names line and column.
    """
    from pyspark_upsert_kafka.connector.listener import ProgressListener
    from pyspark_upsert_kafka.sql.script_compiler import compile_script
    from pyspark_upsert_kafka.sql.script_settings import ScriptSettings

    script = compile_script(
        text_of(given.file),
        mode=given.mode,
        settings=ScriptSettings(checkpoints=given.checkpoint),
        options=dict(given.option),
    )
    with ended_by_signals(), local_spark(given.spark_log) as spark:
        spark.streams.addListener(ProgressListener(print_to=sys.stdout))
        wait_for(started(spark, script), given.timeout)


def started(spark: SparkSession, script: CompiledScript) -> list[StreamingQuery]:
    """Runs a script, and prints which streams it has started."""
    from pyspark_upsert_kafka.sql.script_running import run as run_script

    queries = run_script(spark, script)
    for query in queries:
        echo(f"{query.name} runs{_where(script)}. Ctrl-C ends it.")
    return queries


def wait_for(queries: list[StreamingQuery], timeout: float | None) -> None:
    """Waits until the streams end, Ctrl-C ends them, or their time is over; ``timeout`` is in seconds."""
    from pyspark_upsert_kafka.sql.script_running import stop, wait

    try:
        has_ended = wait(queries, timeout)
    except (KeyboardInterrupt, Exception) as error:
        if not (interrupts.received or isinstance(error, KeyboardInterrupt)):
            raise
        has_ended = False
    if not has_ended:
        interrupts.settled()
        stop(queries)
        echo("Stopped.")


def _where(script: CompiledScript) -> str:
    folder = script.settings.checkpoints
    if folder is not None:
        return f", with its checkpoint in {folder}"
    return ", and starts from the beginning in each run (with --checkpoint FOLDER it continues)"

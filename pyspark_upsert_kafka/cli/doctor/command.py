"""The command ``doctor``: opens the table that the arguments say, and prints what is found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from functools import partial

from pyspark_upsert_kafka.cli.doctor.checkup import Checkup
from pyspark_upsert_kafka.cli.doctor.finding import Finding, Level, error_finding, exit_code
from pyspark_upsert_kafka.cli.doctor.report import write_finding, write_summary
from pyspark_upsert_kafka.cli.table_request import checked_options, table_options
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import OptionError, UpsertKafkaError
from pyspark_upsert_kafka.kafka.clients import load_client

_CREATES_NOTHING = {"properties.allow.auto.create.topics": "false"}


def doctor(given: argparse.Namespace) -> int:
    """Prints each finding as soon as it is there; returns the exit code.

    Raises:
        OptionError: There is nowhere to print it.
    """
    if sys.stdout is None:
        raise OptionError("Standard output is closed: there is nowhere to print what is found.")
    found: list[Finding] = []
    seen = set()
    for finding in _findings(given):
        about = (finding.check, finding.topic)
        if finding.level is Level.NOT_CHECKED and about in seen:
            continue  # it is known already why the check cannot be made
        seen.add(about)
        found.append(finding)
        write_finding(finding, given.output)
    write_summary(found, given.output)
    return exit_code(finding.level for finding in found)


def _findings(given: argparse.Namespace) -> Iterator[Finding]:
    try:
        raw = {**table_options(given, partial(_mode, given)), **_CREATES_NOTHING}
        options = checked_options(given, raw, stream=raw["read.mode"] == "changelog")
        cluster = load_client(options.table.client).cluster(options.table.properties, "driver")
    except UpsertKafkaError as error:
        yield error_finding("options", error)
        return
    yield from (Finding("options", Level.WARNING, text.rstrip(".")) for text in options.warnings)
    with closing(cluster):
        yield from Checkup(given, raw, options, cluster).findings()


def _mode(given: argparse.Namespace, options: Mapping[str, str]) -> str:
    """How the table is read if nothing says it: as a stream, where something is given that only streams have."""
    is_stream = given.checkpoint is not None or "scan.startup.mode" in options
    return "changelog" if is_stream else "snapshot"

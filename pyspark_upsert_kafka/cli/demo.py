"""Run the well-known example, page views per region, on real Kafka and real Spark.

It starts Kafka (or uses the cluster that KAFKA_BOOTSTRAP_SERVERS names), counts page views per region
into an upsert topic, copies a table of users from topic to topic, and checks both tables against a
plain recomputation. It takes about a minute on two cores.

For example:
  python -m pyspark_upsert_kafka demo
  python -m pyspark_upsert_kafka demo --messages 20000 --folder /tmp/demo
"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``demo``."""
    parser.add_argument(
        "--messages",
        metavar="N",
        type=int,
        default=300_000,
        help="approximate number of page views (default: %(default)s)",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("build/demo"),
        help="folder for the picture and Spark's log (default: %(default)s)",
    )


def run(given: argparse.Namespace) -> None:
    """Runs the demo."""
    from pyspark_upsert_kafka.cli.demo_example import run_demo

    run_demo(given.messages, given.folder)

"""Start a real single-node Apache Kafka on this machine and keep it running until Ctrl-C.

It uses the Java that Spark uses. The first start downloads the broker (44 MB). Its topics are deleted when it
stops.

For example:
  python -m pyspark_upsert_kafka local-kafka
  python -m pyspark_upsert_kafka local-kafka --port 19092
"""

from __future__ import annotations

import argparse
import signal
import threading

from pyspark_upsert_kafka.cli.terminal import echo, ended_by_signals
from pyspark_upsert_kafka.kafka.local import LocalKafka

_WELCOME = """\
Apache Kafka runs at {servers}

  in a program         .option("properties.bootstrap.servers", "{servers}")
  look into a topic    python -m pyspark_upsert_kafka show --bootstrap-servers {servers} --topic ...
  run the demo on it   KAFKA_BOOTSTRAP_SERVERS={servers} python -m pyspark_upsert_kafka demo

Topics are created by whoever sets 'properties.allow.auto.create.topics' to 'true', or by any Kafka tool.
Ctrl-C stops it and deletes its data."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``local-kafka``."""
    parser.add_argument(
        "--port",
        type=int,
        default=9092,
        help="port on 127.0.0.1 (default: %(default)s; 0 = a free one)",
    )


def run(given: argparse.Namespace) -> None:
    """Runs a broker until Ctrl-C or SIGTERM."""
    echo("Starting Apache Kafka; the first time it is downloaded, 44 MB ...")
    # A download takes long on a slow line: until the broker is there, a signal ends the start.
    with ended_by_signals(), LocalKafka(port=given.port or None) as kafka:
        stop_requested = _on_stop_signals()
        echo(_WELCOME.format(servers=kafka.bootstrap_servers))
        stop_requested.wait()
        echo("\nStopping Apache Kafka ...")


def _on_stop_signals() -> threading.Event:
    """An event that Ctrl-C and SIGTERM set, so that the broker is shut down in good order."""
    requested = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: requested.set())
    return requested

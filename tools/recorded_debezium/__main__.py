"""Writes a recorded topic of Debezium to a broker, and prints the table that it must amount to."""

from __future__ import annotations

import argparse

from tools.local_topics import create, producer
from tools.recorded_debezium import Recorded, record
from tools.recorded_debezium.columns import LONG


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tools.recorded_debezium", description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=20, help="rows in the snapshot")
    parser.add_argument("--transactions", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument(
        "--without-schemas", action="store_true", help="values without their schema"
    )
    parser.add_argument("--keys-without-schemas", action="store_true")
    parser.add_argument("--replica-identity", choices=["default", "full"], default="default")
    parser.add_argument("--text-length", type=int, default=LONG, help="characters of the text")
    return parser.parse_args()


def main() -> None:
    """Creates the topics, writes the messages, and prints how many, and the columns of the table."""
    given = _arguments()
    recording = record(
        Recorded(
            given.seed,
            given.rows,
            given.transactions,
            not given.without_schemas,
            not given.keys_without_schemas,
            given.replica_identity,
            given.text_length,
        )
    )
    topics = dict.fromkeys(message.topic for message in recording.messages)
    create(given.bootstrap_servers, *topics, partitions=given.partitions, compacted=False)
    writer = producer(given.bootstrap_servers)
    for number, message in enumerate(recording.messages, 1):
        writer.produce(message.topic, key=message.key, value=message.value)
        if number % 1000 == 0:
            writer.flush()
    writer.flush()
    print(f"{len(recording.messages)} messages in {', '.join(topics)}")
    print(f"{len(recording.table)} rows in the end, of the columns {recording.ddl}")


if __name__ == "__main__":
    main()

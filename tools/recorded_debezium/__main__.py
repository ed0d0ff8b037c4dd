"""Writes a recorded topic of Debezium to a broker, and prints the table that it must amount to.

By default it is the recording of docs/database-to-iceberg.md.
"""

from __future__ import annotations

import argparse

from tools.local_topics import create, producer
from tools.recorded_debezium import Recorded, record

_ALL = "all"
_PARTS = ["snapshot", "changes", "added-column"]
OF_THE_PAGE = Recorded(
    941, rows=3, transactions=8, key_schemas=False, replica_identity="full", text_length=20
)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tools.recorded_debezium", description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument(
        "--part", choices=[_ALL, *_PARTS], default=_ALL, help="what is written of it"
    )
    parser.add_argument("--seed", type=int, default=OF_THE_PAGE.seed)
    parser.add_argument("--rows", type=int, default=OF_THE_PAGE.rows, help="rows in the snapshot")
    parser.add_argument("--transactions", type=int, default=OF_THE_PAGE.transactions)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument(
        "--without-schemas", action="store_true", help="values without their schema"
    )
    parser.add_argument("--keys-with-schemas", action="store_true")
    identity = OF_THE_PAGE.replica_identity
    parser.add_argument("--replica-identity", choices=["default", "full"], default=identity)
    length = OF_THE_PAGE.text_length
    parser.add_argument("--text-length", type=int, default=length, help="characters of the text")
    return parser.parse_args()


def main() -> None:
    """Creates the topics with the first part, writes the messages, and prints how many, and the columns of the table."""
    given = _arguments()
    recording = record(
        Recorded(
            given.seed,
            given.rows,
            given.transactions,
            not given.without_schemas,
            given.keys_with_schemas,
            given.replica_identity,
            given.text_length,
        )
    )
    topics = dict.fromkeys(message.topic for message in recording.messages)
    if given.part in (_ALL, _PARTS[0]):
        create(given.bootstrap_servers, *topics, partitions=given.partitions, compacted=False)
    messages = recording.messages if given.part == _ALL else recording.parts[given.part]
    writer = producer(given.bootstrap_servers)
    for number, message in enumerate(messages, 1):
        writer.produce(message.topic, key=message.key, value=message.value)
        if number % 1000 == 0:
            writer.flush()
    writer.flush()
    print(
        f"{len(messages)} messages in {', '.join(dict.fromkeys(each.topic for each in messages))}"
    )
    print(f"{len(recording.table)} rows in the end, of the columns {recording.ddl}")


if __name__ == "__main__":
    main()

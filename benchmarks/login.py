"""What a login by token adds to a client that is opened: `PYTHONPATH=. .venv/bin/python benchmarks/login.py [times]`.

Opens clients that ask a broker one thing, in turn by a password (SASL PLAIN) and by a token that is there (OAUTHBEARER), and prints the
medians and their difference.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing
from statistics import median

from pyspark_upsert_kafka import LocalKafka, LocalSecurity
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.kafka_python import cluster as kafka_python_cluster
from pyspark_upsert_kafka.kafka.librdkafka import cluster as librdkafka_cluster
from tests import given_tokens

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 100
WARM_UP = 10
PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "ana",
    "sasl.password": "open sesame",
}


def opening(client: str, servers: str, login: dict[str, str]) -> float:
    """How long it takes to open a client and to get the names of the brokers, in ms."""
    properties = Properties({"bootstrap.servers": servers, **login})
    began = time.perf_counter()
    with closing(load_client(client).cluster(properties, "driver")) as opened:
        opened.brokers()
        taken_ms = (time.perf_counter() - began) * 1000
    for pool in (librdkafka_cluster.POOL, kafka_python_cluster.POOL):
        pool.close_idle()
    return taken_ms


def main() -> None:
    """Prints the medians."""
    os.environ |= given_tokens.ENVIRONMENT
    logins = {"password": PLAIN, "token": given_tokens.login("user=ana")}
    with LocalKafka(security=LocalSecurity(users={"ana": "open sesame"})) as kafka:
        servers = kafka.address("SASL_PLAINTEXT")
        for client in ("librdkafka", "kafka-python"):
            taken: dict[str, list[float]] = {login: [] for login in logins}
            for _ in range(TIMES + WARM_UP):
                for login, given in logins.items():
                    taken[login].append(opening(client, servers, given))
            password, token = (median(taken[login][WARM_UP:]) for login in logins)
            least = [min(taken[login]) for login in logins]
            print(
                f"{client}: by password {password:.1f} ms (least {least[0]:.1f}), by token {token:.1f} ms "
                f"(least {least[1]:.1f}): {token - password:+.1f} ms"
            )


if __name__ == "__main__":
    main()

"""The connections of a client of kafka-python 3, which avoid brokers that have not answered in time."""

from __future__ import annotations

from typing import Any

from kafka import errors as kafka_errors
from kafka.cluster import collect_hosts
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from pyspark_upsert_kafka.kafka.kafka_python.silent_brokers import SILENT, Address

_CONNECT_MS = KafkaConnectionManager.DEFAULT_CONFIG["socket_connection_setup_timeout_ms"]


class Connections(KafkaNetClient):  # type: ignore[misc]
    """The library's own, with another choice of the broker for what any broker can answer."""

    def __init__(self, **config: Any) -> None:
        net = NetworkSelector(**config)
        super().__init__(net, _Manager(net, **_avoiding(config)), **config)


class _Manager(KafkaConnectionManager):  # type: ignore[misc]
    def least_loaded_node(self) -> Any:
        """The node that the library would choose, or another one where that has not answered."""
        chosen = super().least_loaded_node()
        nodes = {(each.host, each.port): each.node_id for each in self.cluster.brokers()}
        preferred = [nodes[address] for address in SILENT.preferred(nodes)]
        if chosen is None or chosen in preferred:
            return chosen
        return next((node for node in preferred if self.connection_delay(node) == 0), chosen)

    def send(self, request: Any, node_id: Any = None, request_timeout_ms: Any = None) -> Any:
        """The future answer; whether it comes in time is taken note of."""
        node = self.least_loaded_node() if node_id is None else node_id
        future, address = super().send(request, node, request_timeout_ms), self._address(node)

        def note(error: Exception) -> None:
            if address is not None and isinstance(error, kafka_errors.RequestTimedOutError):
                SILENT.note(address)

        if address is not None:
            future.add_callback(lambda _: SILENT.forget(address))
        return future.add_errback(note)

    def update_backoff(self, node_id: Any) -> Any:
        """Takes note of a broker to which no connection was made, or that says nothing on it."""
        if (address := self._address(node_id)) is not None:
            SILENT.note(address)
        return super().update_backoff(node_id)

    def _address(self, node: Any) -> Address | None:
        found = None if node is None else self.cluster.broker_metadata(node)
        return None if found is None else (found.host, found.port)


def _avoiding(config: dict[str, Any]) -> dict[str, Any]:
    """The arguments without bootstrap servers that have not answered; and no connection is waited for longer than a request.

    The library chooses among these servers by chance, and waits for the one.
    """
    servers = config["bootstrap_servers"].split(",")
    parsed = [(host, port) for host, port, _ in collect_hosts(servers, randomize=False)]
    preferred = SILENT.preferred(parsed)
    bootstrap = [
        server for server, address in zip(servers, parsed, strict=True) if address in preferred
    ]
    connect_ms = min(config["request_timeout_ms"], _CONNECT_MS)
    return {
        **config,
        "bootstrap_servers": bootstrap,
        "socket_connection_setup_timeout_ms": connect_ms,
        "socket_connection_setup_timeout_max_ms": connect_ms,
    }

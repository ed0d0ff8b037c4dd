"""The connections of a client of kafka-python-ng, which avoid brokers that have not answered in time."""

from __future__ import annotations

import time
from typing import Any

from kafka import KafkaClient
from kafka import errors as kafka_errors

from pyspark_upsert_kafka.kafka.kafka_python.silent_brokers import SILENT, Address


class Connections(KafkaClient):  # type: ignore[misc]
    """The library's own, with another choice of the broker for what any broker can answer."""

    def least_loaded_node(self) -> Any:
        """The node that the library would choose, or another one where that has not answered."""
        chosen = super().least_loaded_node()
        nodes = {(each.host, each.port): each.nodeId for each in self.cluster.brokers()}
        preferred = [nodes[address] for address in SILENT.preferred(nodes)]
        if chosen is None or chosen in preferred:
            return chosen
        # One whose connection is open, or else one that may be opened now.
        connected = [node for node in preferred if self.connected(node)]
        others = [node for node in preferred if self._may_connect(node)]
        return [*connected, *others, chosen][0]

    def send(self, node_id: Any, request: Any, wakeup: bool = True) -> Any:
        """The future answer; whether it comes in time is taken note of."""
        future, address = super().send(node_id, request, wakeup), self._address(node_id)

        def note(error: Exception) -> None:
            if address is not None and isinstance(error, kafka_errors.RequestTimedOutError):
                SILENT.note(address)

        if address is not None:
            future.add_callback(lambda _: SILENT.forget(address))
        return future.add_errback(note)

    def check_version(
        self,
        node_id: Any = None,
        timeout: float = 2,
        strict: bool = False,
    ) -> Any:
        """The version of a broker, of the first that answers; the library would not tell which did not."""
        deadline = time.monotonic() + timeout
        while True:
            node = self.least_loaded_node() if node_id is None else node_id
            try:
                left = max(0.0, deadline - time.monotonic())
                return super().check_version(node, left, strict)
            except (kafka_errors.NodeNotReadyError, kafka_errors.NoBrokersAvailable):
                if (address := self._address(node)) is not None:
                    SILENT.note(address)
                if node_id is not None:
                    raise
            if time.monotonic() >= deadline:
                raise kafka_errors.NoBrokersAvailable

    def _may_connect(self, node: Any) -> bool:
        return not self.is_disconnected(node) or self.connection_delay(node) == 0

    def _address(self, node: Any) -> Address | None:
        found = None if node is None else self.cluster.broker_metadata(node)
        return None if found is None else (found.host, found.port)

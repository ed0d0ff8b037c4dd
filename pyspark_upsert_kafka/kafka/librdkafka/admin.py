"""The admin client: what it is asked is asked with patience, and its trouble is heard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from typing import Any, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pyspark_upsert_kafka.kafka.librdkafka.asking import Trouble, ask
from pyspark_upsert_kafka.kafka.librdkafka.properties import opened

T = TypeVar("T")

_LOOK_S = 0.2


class Admin:
    """An admin client with its manners.

    Args:
        config: librdkafka's configuration.

    Raises:
        OptionError: The client does not take a property.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.servers = str(config["bootstrap.servers"])
        self._trouble = Trouble()
        self.client = opened(AdminClient, {**config, "error_cb": self._trouble})

    def ask(self, what: str, question: Callable[[float], T]) -> T:
        """The answer to a question, as `asking.ask` gets it."""

        def heard(timeout: float) -> T:
            try:
                return question(timeout)
            finally:
                self.client.poll(0)  # librdkafka tells its log and its trouble only when polled

        return ask(what, self.servers, self._trouble, heard)

    def result(self, future: Future[Any]) -> Any:
        """What a future gives, unless trouble comes up meanwhile that no waiting can mend.

        Raises:
            KafkaException: The future's own, or that trouble.
        """
        while True:
            try:
                return future.result(_LOOK_S)
            except NotYetError:
                self.client.poll(0)
                if self._trouble.hopeless is not None:
                    raise KafkaException(self._trouble.hopeless) from None

"""librdkafka's admin client with retries, each by a client that has looked up the leaders anew."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from pyspark_upsert_kafka.kafka.connections.failures import AttemptError, Failure, Kind
from pyspark_upsert_kafka.kafka.connections.outage import Outage
from pyspark_upsert_kafka.kafka.connections.port_protocol import protocol_hint
from pyspark_upsert_kafka.kafka.connections.retrying import Retrying
from pyspark_upsert_kafka.kafka.connections.timeouts import Timeouts
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors, classify
from pyspark_upsert_kafka.kafka.librdkafka.properties import open_client

T = TypeVar("T")

_POLL_S = 0.2
"""How often errors are looked for while an answer is awaited."""

_LEADER_S = 5.0
"""How long the first attempt waits while a broker is out of reach, before the leader is looked up anew: it may have moved."""

_METADATA_S = 5.0
"""For the metadata of all topics."""

_REPLACED = 4
"""The number of replaced clients that are kept, so that their requests can end."""


class RetryingAdminClient:
    """An admin client, replaced by a new one as the last resort.

    Args:
        config: librdkafka's configuration.
        timeouts: For one attempt and for all of them.

    Raises:
        OptionError: The client does not take a property.
    """

    def __init__(self, config: Mapping[str, Any], timeouts: Timeouts) -> None:
        self.servers, self.timeouts = str(config["bootstrap.servers"]), timeouts
        self.outage = Outage()
        self._errors = ReportedErrors(config)
        # The client must not hold what holds it: its threads end with its last reference.
        self.config = {**config, "error_cb": self._errors.on_error}
        self._leader_s = _LEADER_S
        self._attempt_began = time.monotonic()
        # A client that ends with a request under way may abort the process (librdkafka issue 4605).
        self._replaced: deque[AdminClient] = deque(maxlen=_REPLACED)
        self.client = open_client(AdminClient, self.config)

    def call(self, what: str, request: Callable[[float], T]) -> T:
        """The answer to a request, retried as `Retrying` says."""

        def attempt(timeout: float) -> T:
            self._errors.unreachable = None
            self._attempt_began = time.monotonic()
            with self._refusals_told():
                return request(timeout)

        self.client.poll(0)  # errors of before are passed on now, and cleared
        self._leader_s = _LEADER_S
        # Not kept: it refers to this object, and a cycle would keep the client's threads alive.
        return Retrying(
            self.servers, self.timeouts, self._errors, (KafkaException,), classify,
            self._refresh, self._reopen, self._hint, self.outage,
        ).call(what, attempt)  # fmt: skip

    def close(self) -> None:
        """Ends the client, even while an exception that was raised here, and so this object, is kept."""
        self._replaced.clear()
        del self.client

    def all_topics(self, timeout: float) -> list[str]:
        """Names of all topics; the client knows their leaders anew."""
        # Errors are not passed on meanwhile, so it does not last as long as an attempt may.
        return list(self.client.list_topics(timeout=min(timeout, _METADATA_S)).topics)

    def result(self, future: Future[Any], timeout: float = math.inf) -> Any:
        """What a future gives, unless an error shows meanwhile that no answer will come.

        Args:
            future: One of the client's, which ends by itself in time unless a timeout is given.
            timeout: How long it is waited for, in seconds.

        Raises:
            KafkaException: The future's own, that brokers are out of reach, or that there is no answer in time.
            AttemptError: Security errors are fatal.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                return future.result(_POLL_S)
            except NotYetError:
                self.client.poll(0)
                self._raise_if_lost()
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - confluent-kafka's spelling

    def _raise_if_lost(self) -> None:
        """Raises for a fatal error, and for brokers that are out of reach for long."""
        fatal, unreachable = self._errors.fatal_error, self._errors.unreachable
        if fatal is not None:
            raise AttemptError(Failure(Kind.SECURITY, fatal))
        if unreachable is None:
            return
        if unreachable.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            raise KafkaException(unreachable)
        if time.monotonic() - self._attempt_began > self._leader_s:
            self._leader_s *= 2  # it may also be another broker that is away, and the answer slow
            raise KafkaException(unreachable)

    def _refresh(self, timeout: float) -> bool:
        with self._refusals_told():
            self.all_topics(timeout)
        return True

    @contextmanager
    def _refusals_told(self) -> Iterator[None]:
        """Raises the refused login or certificate, where a request knows only that its connection was lost.

        The client reports the cause once, and not again within half a minute.
        """
        refusals = self._errors.refusals
        try:
            yield
        except KafkaException as error:
            self.client.poll(0)
            if self._errors.refusals > refusals and classify(error).kind.is_retriable:
                text = self._errors.security_error
                raise AttemptError(Failure(Kind.SECURITY, text)) from error
            raise
        finally:
            self.client.poll(0)  # librdkafka passes on its log and its errors only when polled

    def _hint(self) -> str:
        return protocol_hint(self.servers, str(self.config.get("security.protocol", "")))

    def _reopen(self) -> None:
        self._replaced.append(self.client)
        self.client = open_client(AdminClient, self.config)

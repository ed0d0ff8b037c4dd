"""The one loop in which brokers are asked, whichever client asks: what passes is tried again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.kafka.failures import AttemptError, Failure, Kind, UnknownTopicError
from pyspark_upsert_kafka.kafka.timeouts import Timeouts
from pyspark_upsert_kafka.kafka.trouble import CHECK_SECURITY, Trouble

T = TypeVar("T")

_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0
"""Between attempts: the Java client's ``retry.backoff.ms`` and ``retry.backoff.max.ms``."""

_CLIENTS = 4
"""When nothing helps, so many clients share the time for all attempts."""

_LEAST_S = 0.1


def _nothing(*_: object) -> None:
    """Of a client that keeps nothing from one attempt to the next."""


@dataclass(frozen=True)
class Asking:
    """How a client is asked.

    Args:
        servers: The bootstrap servers, for errors.
        timeouts: For one attempt and for all of them.
        trouble: What the client says goes wrong.
        errors: What an attempt may raise.
        failure: Tells what such an error means.
        refresh: Has the client look up leaders and brokers anew.
        reopen: Has the next attempt open a new client.
    """

    servers: str
    timeouts: Timeouts
    trouble: Trouble
    errors: tuple[type[Exception], ...]
    failure: Callable[[Exception], Failure]
    refresh: Callable[[float], object] = _nothing
    reopen: Callable[[], object] = _nothing

    def ask(self, what: str, question: Callable[[float], T]) -> T:
        """The answer to a question, asked again while the trouble passes.

        A client may keep for minutes what it once knew of leaders: so it looks them up anew before it
        asks again, and as a last resort it is replaced.

        Args:
            what: What is asked for, to complete "could not".
            question: Gets a timeout in seconds.

        Raises:
            BrokerError: No answer within the time for all attempts, or one that cannot change.
            UnknownTopicError: A topic or partition is not known.
        """
        known: tuple[type[Exception], ...] = (AttemptError, *self.errors)
        self.trouble.begin()
        begin = replaced = time.monotonic()
        pause, failure = _PAUSE_S, None
        while True:
            left = begin + self.timeouts.api_s - time.monotonic()
            if failure is not None and left <= 0:
                raise self._no_answer(what, failure)
            timeout = max(_LEAST_S, min(self.timeouts.request_s, left))
            try:
                if failure is not None:
                    self.refresh(timeout)
                answer = question(timeout)
            except known as error:
                failure = error.failure if isinstance(error, AttemptError) else self.failure(error)
            else:
                self.trouble.progress()
                return answer
            self._raise_fatal(what, failure)
            lasted = time.monotonic() - replaced
            if failure.kind is Kind.SECURITY or lasted > self.timeouts.api_s / _CLIENTS:
                # A client may repeat the verdict of its first login for ever.
                self.reopen()
                replaced = time.monotonic()
            time.sleep(min(pause, max(0.0, left)))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _raise_fatal(self, what: str, failure: Failure) -> None:
        if failure.kind is Kind.SECURITY:
            self.trouble.error(failure.text, security=True)
        fatal = self.trouble.fatal
        if fatal is None and failure.kind in (Kind.RETRIABLE, Kind.SECURITY):
            return
        kind = UnknownTopicError if failure.kind is Kind.UNKNOWN_TOPIC else BrokerError
        raise kind(
            f"Could not {what} at {self.servers!r}: {fatal or failure.text}."
            f"{CHECK_SECURITY if fatal else ''}"
        )

    def _no_answer(self, what: str, failure: Failure) -> BrokerError:
        seen = self.trouble.describe()
        return BrokerError(
            f"Could not {what}: no Kafka broker at {self.servers!r} answered within "
            f"{self.timeouts.api_s:g} seconds ({failure.text}).{seen}{'.' if seen else ''} "
            "Check 'properties.bootstrap.servers' and 'properties.security.protocol', and that the broker "
            "runs and can be reached from here. Where a broker needs longer, raise "
            "'properties.default.api.timeout.ms'."
        )

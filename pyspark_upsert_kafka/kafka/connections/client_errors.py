"""The errors that a client reports by itself, and when they are fatal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pyspark_upsert_kafka.core.secrets.outside_text import OutsideText

FATAL_AFTER_S = 5.0
"""Security errors are fatal when they have gone on for so long (seconds) and nothing got through."""

_OFTEN = 4
"""How often an error must come that may have another cause, before it counts as one of security."""


SECURITY_HINT = (
    " Check 'properties.security.protocol', the credentials ('properties.sasl.*'), and the "
    "certificates ('properties.ssl.*')."
)
"""What to do about a fatal error, as text to append to a sentence."""


class ClientErrors:
    """The errors of one client since its task began.

    A client reconnects by itself, and one of several brokers may have a bad certificate: so a
    refused login or certificate is fatal only when such errors go on while nothing gets through.

    Args:
        settings: Those of the client: their secrets are not shown.
        clock: Gives the time in seconds.
    """

    def __init__(
        self,
        settings: Mapping[str, object] = MappingProxyType({}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self.shown: Callable[[str], str] = OutsideText(settings).shown
        """Makes what the client or a broker says fit to be shown."""
        self._lock = threading.Lock()
        self._refusals = 0
        self.clear()

    def clear(self) -> None:
        """Forgets the errors of an earlier task."""
        with self._lock:
            self._last = self._security = ""
            self._lasted_s = self._since = 0.0
            self._times = 0
            self._is_certain = False

    def add(
        self, text: str, *, security: bool = False, vague: bool = False, certain: bool = True
    ) -> None:
        """Takes note of an error.

        Args:
            text: In the client's words.
            security: Whether a login or a certificate was refused.
            vague: Whether it does not say what is wrong: then the text of an earlier security error is kept.
            certain: Whether the cause is security for sure. A broker that restarts hangs up just as one that expects
                another protocol does, but it does not do so again and again.
        """
        text = self.shown(text)
        with self._lock:
            self._last = text
            if security:
                now = self._clock()
                if not self._security:
                    self._since, self._times, self._is_certain = now, 0, False
                self._times += 1
                self._is_certain |= certain
                self._security = self._security if vague and self._security else text
                self._lasted_s = now - self._since
                self._refusals += not vague

    def note_progress(self) -> None:
        """Forgets security errors, since an answer, a message or a confirmation got through."""
        if self._security:
            with self._lock:
                self._security, self._lasted_s = "", 0.0

    @property
    def refusals(self) -> int:
        """How many errors of security there were that say what is wrong."""
        return self._refusals

    @property
    def security_error(self) -> str:
        """The last error of security; empty when something got through after it."""
        return self._security

    @property
    def fatal_error(self) -> str | None:
        """The security error that went on for too long; None = retrying may help."""
        with self._lock:
            is_fatal = self._lasted_s >= FATAL_AFTER_S
            return (
                self._security if is_fatal and (self._is_certain or self._times >= _OFTEN) else None
            )

    def describe(self, said: str = "") -> str:
        """The last error, and what to check when it is about security: to append to a sentence.

        Args:
            said: What the sentence itself says of the failure; an error with that text is not repeated.
        """
        with self._lock:
            last = self._security or self._last
            seen = f" Last seen: {last}" if last and last != said else ""
            if self._security:
                return f"{seen}{'.' if seen else ''}{SECURITY_HINT.removesuffix('.')}"
            return seen

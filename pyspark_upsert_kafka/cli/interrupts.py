"""Ctrl-C that gets through, wherever it comes: for commands that call a Kafka client in the main thread.

Python raises KeyboardInterrupt in whatever runs just then. In a destructor, or in a callback of a library in C, it is
dropped, or becomes another error.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any

_AGAIN_S = 0.5
"""What has not got through by then was dropped; what is closed on the way out takes less."""


class Interrupts:
    """Raises KeyboardInterrupt for the first Ctrl-C, again and again until it is `settled`; further ones change nothing."""

    def __init__(self) -> None:
        self.received = self._has_begun = False

    def begin(self) -> None:
        """Takes Ctrl-C over, unless it is ignored, as of a program in the background."""
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._has_begun = True
            signal.signal(signal.SIGALRM, self._again)
            signal.signal(signal.SIGINT, self._first)
            sys.unraisablehook = self._unraisable

    def settled(self) -> None:
        """It has got through: what is done from now on is not interrupted."""
        if self._has_begun:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _first(self, _: int, __: FrameType | None) -> None:
        if not self.received:
            self.received = True
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _AGAIN_S)
            raise KeyboardInterrupt

    def _again(self, _: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    def _unraisable(self, dropped: Any) -> None:
        if not self.received:
            sys.__unraisablehook__(dropped)


interrupts = Interrupts()

"""Java's ``sasl.jaas.config``, as far as it holds a user's name and password."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LOGIN = re.compile(
    r"\s*[\w.$]*\.(?P<module>\w+)\s+(?:required|requisite|sufficient|optional)\s+"
    r"(?P<pairs>(?:\w+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s;]+)\s*)+?);?\s*"
)
_PAIR = re.compile(r"(\w+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;]+))")


@dataclass(frozen=True)
class Login:
    """What a login module is given.

    Args:
        module: The class without its package; empty = not understood.
        given: Its settings, which may be secret.
    """

    module: str = ""
    given: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_by_password(self) -> bool:
        """Whether name and password are all there is to it."""
        return self.module in ("PlainLoginModule", "ScramLoginModule")


def login(value: str) -> Login:
    """The login that a value of ``sasl.jaas.config`` describes."""
    found = _LOGIN.fullmatch(value)
    if found is None:
        return Login()
    return Login(
        found["module"], {name: a or b or c for name, a, b, c in _PAIR.findall(found["pairs"])}
    )

"""What an option is: one declaration from which checks, defaults and docs/options.md follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.secrets.masking import is_secret, resolve

Parser = Callable[[str], Any]


@dataclass(frozen=True)
class Option:
    """One declared option.

    Args:
        name: Its full name, or for an option of a format the part after ``value.<format>.``.
        parse: Text to value; raises ValueError with what was expected.
        default: Value when it is not given; None = not set.
        help: One line for docs/options.md.
        shown_default: How the documentation writes the default, when not as ``default``.
        complaint: What is said of a text that is not a value of this option.
    """

    name: str
    parse: Parser
    default: Any
    help: str
    shown_default: str | None = None
    complaint: str = "Invalid value for option '{name}': {expected}, but is {seen}."

    def read(self, given: Mapping[str, str], prefix: str = "") -> Any:
        """The value among the ``given`` options (names in lower case), or the default.

        A reference is replaced here, but for a secret, which stays one until it is used.

        Raises:
            OptionError: The text is not a value of this option, or refers to nothing.
        """
        name = prefix + self.name
        given_text = given.get(name.lower())
        if given_text is None:
            return self.default
        secret = is_secret(name)
        resolved = given_text if secret else resolve(name, given_text)
        try:
            return self.parse(resolved)
        except ValueError as error:
            if secret:
                raise OptionError(
                    f"Invalid value for option '{name}'; it is not shown here, since it may be "
                    f"secret. The option says: {self.help}"
                ) from None
            raise OptionError(
                self.complaint.format(name=name, expected=error, seen=repr(given_text))
            ) from None

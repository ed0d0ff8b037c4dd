"""What an option is, and options as they were given: checks, defaults and docs/options.md follow from one declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.secrets.masking import is_secret, resolve

Parser = Callable[[str], Any]


class Given(dict[str, str]):
    """The options that were given, names in lower case.

    Args:
        options: The options.
        places: Where those stand that are in a statement.
        spelt: Names as they were written, by their lower case, of those that have capital letters.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        places: Mapping[str, Place] = MappingProxyType({}),
        spelt: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(options)
        self.places = dict(places)
        self.spelt = dict(spelt)


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
            OptionError: The text is not a value of this option, or refers to nothing; it names the place if that is
                in a statement.
        """
        name = prefix + self.name
        text = given.get(name.lower())
        return self.default if text is None else self._value(name, text, given)

    def _value(self, name: str, text: str, given: Mapping[str, str]) -> Any:
        try:
            return self._parsed(name, text)
        except OptionError as error:
            raise OptionError(f"{error}{where(name.lower(), given)}") from None

    def _parsed(self, name: str, text: str) -> Any:
        secret = is_secret(name)
        resolved = text if secret else resolve(name, text)
        try:
            return self.parse(resolved)
        except ValueError as error:
            if secret:
                raise OptionError(
                    f"Invalid value for option '{name}'; it is not shown here, since it may be "
                    f"secret. The option says: {self.help}"
                ) from None
            raise OptionError(
                self.complaint.format(name=name, expected=error, seen=repr(text))
            ) from None


@dataclass(frozen=True)
class OptionFamily(Option):
    """Options with a prefix, such as ``metadata.<column>``, behind which users choose the name.

    Declared like any option: in ``core/options/catalog.py``, or among the options of a format. Its value has a pair for
    each option that was given, sorted: what stands behind the prefix, and the value. The case of what stands behind the
    prefix is kept in ``upsert_sink(options)`` and in a DDL. ``.option(...)`` of Spark gives lower case.

    Args:
        prefix: What stands before the name that users choose, in lower case, with the dot.
        keeps_references: Whether references in values are replaced later, where the values are used.
    """

    default: tuple[tuple[str, Any], ...] = ()
    help: str = ""
    shown_default: str | None = ""
    prefix: str = ""
    keeps_references: bool = False

    def has(self, name: str, prefix: str = "") -> bool:
        """Whether a name (in lower case) is that of one of these options."""
        begin = prefix + self.prefix
        return name.startswith(begin) and name != begin

    def read(self, given: Mapping[str, str], prefix: str = "") -> tuple[tuple[str, Any], ...]:
        """The pairs of the options among the ``given`` ones (names in lower case).

        Raises:
            OptionError: As `Option.read` does.
        """
        spelt = given.spelt if isinstance(given, Given) else {}
        begin = len(prefix + self.prefix)
        return tuple(
            (spelt.get(name, name)[begin:], self._value(name, given[name], given))
            for name in sorted(given)
            if self.has(name, prefix)
        )

    def _parsed(self, name: str, text: str) -> Any:
        return self.parse(text) if self.keeps_references else super()._parsed(name, text)


def where(name: str, given: Mapping[str, str]) -> str:
    """Where an option (in lower case) stands, as the end of what is said of it; empty when it is in no statement."""
    place = given.places.get(name) if isinstance(given, Given) else None
    return f" ({place})" if place else ""

"""Whom a name in ``sasl.oauthbearer.token.provider`` means, and the tokens of a client's properties.

A provider is code that runs where a client logs in. So a name is one of ours, or one that an installed package has for it; any other
function of Python only where the environment says so, since whoever writes a DDL or a script must not choose what is run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import NamedTuple

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.core.outside_text import OutsideText
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens, shared_tokens

PROVIDER, CONFIG = "sasl.oauthbearer.token.provider", "sasl.oauthbearer.config"

_OPTION = f"'{PREFIX}{PROVIDER}'"
_GROUP = "pyspark_upsert_kafka.token_providers"
_ALLOWED = "UPSERT_KAFKA_TOKEN_PROVIDERS"
"""The environment variable that lists the modules of which functions may be called."""

_OTHER_WAYS = (
    "sasl.oauthbearer.token.endpoint.url",
    "enable.sasl.oauthbearer.unsecure.jwt",
    "sasl.oauthbearer.method",
)
"""Properties that say in another way where tokens come from."""

Ask = Callable[[str], object]
"""Gives a token for the text of ``sasl.oauthbearer.config``, as confluent-kafka's ``oauth_cb`` does."""


class _Ours(NamedTuple):
    """A provider of this package.

    Args:
        module: Has a function ``provider``, which makes an `Ask` of a client's properties.
        extra: What to install for it.
    """

    module: str
    extra: str


_OURS: dict[str, _Ours | None] = {
    "aws-msk": _Ours("pyspark_upsert_kafka.logins.aws_msk", "aws"),
    "azure": None,
    "gcp": None,
}
"""By their names; None = the name is kept for one that is not there yet."""


def tokens_of(given: Mapping[str, str]) -> LoginTokens | None:
    """The tokens by which a client with these properties logs in; None = they name no provider.

    Args:
        given: The properties, with their references replaced.

    Raises:
        OptionError: The provider is not known, may not be called, or contradicts another property.
    """
    name = given.get(PROVIDER)
    if name is None:
        return None
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms", ""))
    if mechanism.upper() != "OAUTHBEARER":
        raise OptionError(
            f"Option {_OPTION} = '{name}' needs '{PREFIX}sasl.mechanism' = 'OAUTHBEARER', but it is '{mechanism or 'not given'}'."
        )
    others = [f"'{PREFIX}{other}'" for other in _OTHER_WAYS if other in given]
    if others:
        raise OptionError(
            f"Options {_OPTION} and {others[0]} both say where tokens come from: leave one out."
        )
    return provider_tokens(name, given, option=PREFIX + PROVIDER)


def provider_tokens(name: str, given: Mapping[str, str], *, option: str) -> LoginTokens:
    """The tokens of a provider.

    Args:
        name: Its name.
        given: The properties of the client, with their references replaced: of ``sasl.oauthbearer.config`` the provider gets the text.
        option: The option that names it.

    Raises:
        OptionError: The provider is not known, or may not be called.
    """
    config = given.get(CONFIG, "")

    def make() -> LoginTokens:
        ask = _found(name, given, f"Option '{option}' = '{name}'")
        return LoginTokens(name, lambda: ask(config), OutsideText(given).shown)

    return shared_tokens((name, config, given.get("bootstrap.servers", "")), make)


def _found(name: str, given: Mapping[str, str], named: str) -> Ask:
    if name in _OURS:
        return _ours(name, given, named)
    if ":" in name:
        module, function = name.split(":", 1)
        return _function(module, function, named)
    found = [each for each in entry_points(group=_GROUP) if each.name == name]
    if not found:
        names = sorted({*_OURS, *(each.name for each in entry_points(group=_GROUP))})
        raise OptionError(
            f"{named}: no installed package has a provider of this name. Known here are "
            f"{', '.join(map(repr, names))}; a function is named as '<module>:<function>'."
        )
    values = sorted({each.value for each in found})
    if len(values) > 1:
        raise OptionError(
            f"{named}: several installed packages have a provider of this name: {', '.join(values)}."
        )
    return _callable(found[0].load, named)


def _ours(name: str, given: Mapping[str, str], named: str) -> Ask:
    ours = _OURS[name]
    if ours is None:
        raise OptionError(
            f"{named}: this version has no such provider. Name a function that gives the tokens, as "
            "'<module>:<function>'."
        )
    try:
        made: Ask = import_module(ours.module).provider(given)
    except ImportError as error:
        raise OptionError(
            f"{named} needs a package that is not installed ({error}): "
            f"pip install 'pyspark-upsert-kafka[{ours.extra}]'"
        ) from None
    return made


def _function(module: str, function: str, named: str) -> Ask:
    allowed = [each.strip() for each in os.environ.get(_ALLOWED, "").split(",")]
    if module not in allowed:
        raise OptionError(
            f"{named} names a function to be called, which an option alone may not do: set the environment "
            f"variable '{_ALLOWED}' to '{module}' (several modules with commas between them) where it is called, on the "
            "driver and on each executor."
        )

    def load() -> object:
        return getattr(import_module(module), function)

    return _callable(load, named)


def _callable(load: Callable[[], object], named: str) -> Ask:
    try:
        found = load()
    except (ImportError, AttributeError) as error:
        raise OptionError(f"{named} cannot be loaded: {error}.") from error
    if not callable(found):
        raise OptionError(f"{named} is no function.")
    return found

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
from pyspark_upsert_kafka.core.masking import OutsideText
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens, shared_tokens

PROVIDER, CONFIG = "sasl.oauthbearer.token.provider", "sasl.oauthbearer.config"

OWN_WAY = "sasl.oauthbearer.metadata.authentication.type"
"""How librdkafka or confluent-kafka gets tokens itself, of the machine: ``azure_imds``, ``aws_iam``."""

_OPTION = f"'{PREFIX}{PROVIDER}'"
_GROUP = "pyspark_upsert_kafka.token_providers"
_ALLOWED = "UPSERT_KAFKA_TOKEN_PROVIDERS"
"""The environment variable that lists the modules of which functions may be called."""

_MACHINES_HEADER = "IDENTITY_HEADER"
"""The environment variable whose value shows that a program runs on a machine of Azure's, and gets its tokens."""

_OTHER_WAYS = (
    "sasl.oauthbearer.token.endpoint.url",
    "enable.sasl.oauthbearer.unsecure.jwt",
    "sasl.oauthbearer.method",
    OWN_WAY,
)
"""Properties that say in another way where tokens come from."""

Ask = Callable[[str], object]
"""Gives a token for the text of ``sasl.oauthbearer.config``, as confluent-kafka's ``oauth_cb`` does."""


class _Ours(NamedTuple):
    """A provider of this package.

    Args:
        module: The module that has it.
        extra: What to install for it.
        function: Makes an `Ask` of a client's properties.
    """

    module: str
    extra: str
    function: str = "provider"


_OURS = {
    "aws-msk": _Ours("aws_msk", "aws"),
    "azure": _Ours("azure_event_hubs", "azure"),
    "gcp": _Ours("google_managed_kafka", "gcp"),
    "gcp-access-token": _Ours("google_managed_kafka", "gcp", "access_tokens"),
}
"""By their names; the last gives the schema registry of Google's what brokers do not take."""


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
        return LoginTokens(
            name, lambda: ask(config), OutsideText({**_environment(), **given}).shown
        )

    return shared_tokens((name, config, given.get("bootstrap.servers", "")), make)


def _environment() -> dict[str, str]:
    """Of the environment what may be secret: there the libraries of clouds find credentials, which an answer may repeat."""
    return {
        f"{name}.secret" if name == _MACHINES_HEADER else name: value
        for name, value in os.environ.items()
        if name != _ALLOWED and not name.endswith(("_DIR", "_FILE", "_PATH", "_URI"))
    }


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
    try:
        module = import_module(f"{__package__}.{ours.module}")
    except ImportError as error:
        raise OptionError(
            f"{named} needs a package that is not installed ({error}): "
            f"pip install 'pyspark-upsert-kafka[{ours.extra}]'"
        ) from None
    made: Ask = getattr(module, ours.function)(given)
    return made


def config_entries(given: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """What ``sasl.oauthbearer.config`` says, ``<name>=<value>`` with spaces between, as providers of ours want it.

    Args:
        given: The properties of the client.
        names: The names that mean something.

    Raises:
        OptionError: Something else stands there.

    >>> config_entries({"sasl.oauthbearer.config": "clientId=a"}, ("clientId",))
    {'clientId': 'a'}
    """
    entries = dict(entry.partition("=")[::2] for entry in given.get(CONFIG, "").split())
    if any(name not in names or not value for name, value in entries.items()):
        raise OptionError(
            f"Invalid value for option '{PREFIX}{CONFIG}', or for the provider of a schema registry: expected '<name>=<value>' "
            f"with spaces between, where the names are {', '.join(names)}."
        )
    return entries


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

"""How to get at a schema registry: its addresses, who asks, also by tokens that are renewed, and whom to trust.

What is secret stays as it was given, a reference if it is one, until a request is made.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.masking import resolve
from pyspark_upsert_kafka.core.options.parsers import http_parts
from pyspark_upsert_kafka.core.options.properties import PREFIX, Properties
from pyspark_upsert_kafka.logins.jaas import without_jaas
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens
from pyspark_upsert_kafka.logins.own_tokens import TokenEndpoint, only_librdkafka, own_tokens
from pyspark_upsert_kafka.logins.token_providers import CONFIG, provider_tokens, tokens_of

_EXPECTED = (
    "expected an address such as 'http://localhost:8081'; in a user or password, %2F stands for '/', "
    "%23 for '#', %3F for '?', %40 for '@'"
)


@dataclass(frozen=True)
class Addresses:
    """Where a registry is.

    Args:
        urls: Its addresses, without user and password.
        user_info: What stands before the ``@``: ``<user>:<password>``.
    """

    urls: tuple[str, ...]
    user_info: str | None = field(default=None, repr=False)


def addresses(value: str) -> Addresses:
    """One ``http`` or ``https`` address, or several separated by commas.

    >>> addresses("https://me:secret@registry.example.org/")
    Addresses(urls=('https://registry.example.org',))
    """
    parts = [_split(part.strip()) for part in value.split(",") if part.strip()]
    users = {part.netloc.rpartition("@")[0] for part in parts}
    if len(users) != 1:
        raise ValueError(_EXPECTED if not users else "expected the same user in all addresses")
    user = users.pop()
    urls = (part._replace(netloc=part.netloc.rpartition("@")[2]).geturl() for part in parts)
    return Addresses(tuple(url.rstrip("/") for url in urls), unquote(user) if user else None)


def _split(address: str) -> SplitResult:
    parts = http_parts(address)
    if parts is None or parts.query or parts.fragment or "@" in parts.path:
        raise ValueError(_EXPECTED)
    return parts


_SOURCE = "bearer-auth.credentials-source"
_URL, _CLIENT_ID, _CLIENT_SECRET, _SCOPE = (
    "bearer-auth.issuer.endpoint.url", "bearer-auth.client.id", "bearer-auth.client.secret", "bearer-auth.scope",
)  # fmt: skip
_PROVIDER, _PROVIDER_CONFIG = "bearer-auth.token.provider", "bearer-auth.token.provider.config"

_INHERITED = "SASL_OAUTHBEARER_INHERIT"


@dataclass(frozen=True)
class TokenLogin:
    """Who gives tokens. What is secret is as it was given, a reference if it is one.

    Args:
        source: The value of ``bearer-auth.credentials-source``, of a token that is not always the same.
        given: The options that go with it, by their names.
        client: The properties of the Kafka client, whose login is taken.
    """

    source: str
    given: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    client: Properties = field(default_factory=lambda: Properties({}))

    def named(self, option_prefix: str) -> str:
        """The option that chooses it, with its value."""
        return f"'{option_prefix}{_SOURCE}' = '{self.source}'"

    def tokens(self, option_prefix: str, authorities: str | None = None) -> LoginTokens:
        """The tokens, which all registries and clients of this process share that log in so.

        Args:
            option_prefix: What option names begin with.
            authorities: Certificates, PEM, that are trusted beside those of the system.

        Raises:
            OptionError: A reference leads nowhere, or the login cannot be used.
        """
        if self.source == _INHERITED:
            return self._inherited(option_prefix)
        given = self._resolved(option_prefix)
        if self.source == "CUSTOM":
            config = {CONFIG: given.get(_PROVIDER_CONFIG, "")}
            return provider_tokens(given[_PROVIDER], config, option=option_prefix + _PROVIDER)
        client = given[_URL], given[_CLIENT_ID], given[_CLIENT_SECRET], given.get(_SCOPE)
        return TokenEndpoint(*client, more_authorities=authorities).tokens()

    def secrets(self, option_prefix: str) -> dict[str, str]:
        """What must not be shown, by names that say so, references replaced.

        Raises:
            OptionError: A reference leads nowhere.
        """
        found = self._resolved(option_prefix)
        if _PROVIDER_CONFIG in found:
            found[CONFIG] = found.pop(_PROVIDER_CONFIG)
        return {**(self.client.resolved() if self.source == _INHERITED else {}), **found}

    def _resolved(self, option_prefix: str) -> dict[str, str]:
        return {name: resolve(option_prefix + name, value) for name, value in self.given}

    def _inherited(self, option_prefix: str) -> LoginTokens:
        named = f"Option {self.named(option_prefix)}"
        given = without_jaas(self.client.resolved())
        mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms", ""))
        if mechanism.upper() != "OAUTHBEARER":
            raise OptionError(
                f"{named} takes the login of the Kafka client, which has no tokens: '{PREFIX}sasl.mechanism' is "
                f"'{mechanism or 'not given'}', and not 'OAUTHBEARER'."
            )
        other = only_librdkafka(given)
        if other is not None:
            raise OptionError(
                f"{named} cannot take the login of the Kafka client: by '{PREFIX}{other}' librdkafka alone gets tokens. "
                f"Set it to 'OAUTHBEARER' or 'CUSTOM'."
            )
        return tokens_of(given) or own_tokens(given)


@dataclass(frozen=True)
class Access:
    """What a request to a registry needs.

    Args:
        option_prefix: What option names begin with, for errors.
        urls: Addresses of the registry.
        user_info: ``<user>:<password>``.
        token: A bearer token.
        login: Who gives bearer tokens.
        cluster: For ``target-sr-cluster``: which of several registries at this address is meant.
        identity_pool: For ``Confluent-Identity-Pool-Id``: for which identities the token stands.
        truststore: File of certificates to trust, PEM or PKCS#12; None = those of the system.
        truststore_password: Password of that store.
        keystore: File with the client's key and certificates, PEM or PKCS#12.
        keystore_password: Password of that key, or of the store.
    """

    option_prefix: str
    urls: tuple[str, ...]
    user_info: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    login: TokenLogin | None = None
    cluster: str | None = None
    identity_pool: str | None = None
    truststore: str | None = None
    truststore_password: str | None = field(default=None, repr=False)
    keystore: str | None = field(default=None, repr=False)
    keystore_password: str | None = field(default=None, repr=False)

    def headers(self) -> dict[str, str]:
        """The headers that say who asks, without a token of `login`.

        Raises:
            OptionError: A reference leads nowhere, or what is given cannot be sent.
        """
        return {**self._authorization(), **self._which()}

    def _which(self) -> dict[str, str]:
        headers = {
            "target-sr-cluster": ("bearer-auth.logical.cluster", self.cluster),
            "Confluent-Identity-Pool-Id": ("bearer-auth.identity.pool.id", self.identity_pool),
        }
        return {
            header: self._sendable(name, value)
            for header, (name, value) in headers.items()
            if value is not None
        }

    def _authorization(self) -> dict[str, str]:
        if self.user_info is not None:
            user_info = self.resolved("basic-auth.user-info", self.user_info)
            return {"Authorization": f"Basic {base64.b64encode(user_info.encode()).decode()}"}
        if self.token is not None:
            return {"Authorization": f"Bearer {self._sendable('bearer-auth.token', self.token)}"}
        return {}

    def _sendable(self, name: str, value: str) -> str:
        found = self.resolved(name, value).strip()
        if not found.isascii() or not found.isprintable():
            raise OptionError(
                f"The value of '{self.option_prefix}{name}' cannot be sent: it is made of "
                "visible ASCII characters."
            )
        return found

    def secrets(self) -> dict[str, str]:
        """What must not be shown, by the names of options, references replaced.

        Raises:
            OptionError: A reference leads nowhere.
        """
        given = {
            "basic-auth.user-info": self.user_info,
            "bearer-auth.token": self.token,
            "ssl.keystore.password": self.keystore_password,
            "ssl.truststore.password": self.truststore_password,
        }
        own = {} if self.login is None else self.login.secrets(self.option_prefix)
        return own | {
            name: self.resolved(name, value) for name, value in given.items() if value is not None
        }

    def resolved(self, name: str, value: str) -> str:
        """The value of one of the options, a reference replaced.

        Raises:
            OptionError: The reference leads nowhere.
        """
        return resolve(self.option_prefix + name, value)

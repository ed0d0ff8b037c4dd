"""Logins to a schema registry by tokens that are renewed: where each value of ``bearer-auth.credentials-source`` has them from."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.masking import resolve
from pyspark_upsert_kafka.core.options.properties import PREFIX, Properties
from pyspark_upsert_kafka.logins.jaas import without_jaas
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens
from pyspark_upsert_kafka.logins.own_tokens import TokenEndpoint, only_librdkafka, own_tokens
from pyspark_upsert_kafka.logins.token_providers import CONFIG, provider_tokens, tokens_of

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

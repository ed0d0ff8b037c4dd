"""The options that every format with a registry has: those of Flink's ``AvroConfluentFormatOptions``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.given import missing_options
from pyspark_upsert_kafka.core.options.parsers import boolean, http_parts, one_of, text
from pyspark_upsert_kafka.formats.codec import CodecSpec
from pyspark_upsert_kafka.registry.access import Access, Addresses, TokenLogin, addresses

_OLDER = ("url", "subject", "schema")
"""Options that Flink called ``schema-registry.<name>`` before, and still takes under that name."""

# What was given for a URL is not shown: it may hold a password.
_URL_COMPLAINT = "Invalid value for option '{name}': {expected}."


def _token_endpoint(value: str) -> str:
    """The address of a token endpoint, without user and password: a client has an id and a secret."""
    if (
        http_parts(value) is None
        or "@" in value
        or "#" in value
        or not value.isascii()
        or not value.isprintable()
        or " " in value
    ):
        raise ValueError(
            "expected an address such as 'https://login.example.org/oauth2/token', without a user or password"
        )
    return value


_STATIC = "STATIC_TOKEN"
_OF_SOURCE = {
    _STATIC: {"bearer-auth.token": True},
    "OAUTHBEARER": {
        "bearer-auth.issuer.endpoint.url": True,
        "bearer-auth.client.id": True,
        "bearer-auth.client.secret": True,
        "bearer-auth.scope": False,
    },
    "SASL_OAUTHBEARER_INHERIT": {},
    "CUSTOM": {"bearer-auth.token.provider": True, "bearer-auth.token.provider.config": False},
}
"""The options that go with each value of ``bearer-auth.credentials-source``, and whether it needs them."""

_PAYLOAD, _HEADER = "payload", "header"
_CLUSTER, _POOL = "bearer-auth.logical.cluster", "bearer-auth.identity.pool.id"

OPTIONS = (
    Option("url", addresses, None,
           "Required. Address of the schema registry; several addresses of one registry are separated by commas.", complaint=_URL_COMPLAINT),
    Option("subject", text, None,
           "The subject under which schemas are registered and looked up.",
           shown_default="`<topic>-key`, `<topic>-value`"),
    Option("schema", text, None,
           "Writing: the schema of the messages. Reading: the reader's schema, to which the schema of each message is "
           "resolved; it has no effect for JSON. Schemas of Avro and JSON Schema are JSON; a schema of Protobuf is the text of a "
           "`.proto` file.",
           shown_default="the one that Flink derives from the columns"),
    Option("auto.register.schemas", boolean, True,
           "Writing: register the schema; if `false`, it must be registered already."),
    Option("schema-id-location", one_of(_PAYLOAD, _HEADER), _PAYLOAD,
           "Writing: where a message names its schema: before its bytes (`payload`), or in the header `__key_schema_id` or "
           "`__value_schema_id` (`header`). Reading needs no option."),
    Option("basic-auth.credentials-source", one_of("URL", "USER_INFO"), None,
           "Where user and password are given: in the address (`URL`), or in `basic-auth.user-info` "
           "(`USER_INFO`).", shown_default="where they are given"),
    Option("basic-auth.user-info", text, None, "`<user>:<password>`."),
    Option("bearer-auth.credentials-source", one_of(*_OF_SOURCE), None,
           "Where tokens come from: `STATIC_TOKEN` = from `bearer-auth.token`; `OAUTHBEARER` = from an OpenID Connect endpoint; "
           "`SASL_OAUTHBEARER_INHERIT` = they are those of the Kafka client's login; `CUSTOM` = from a function.",
           shown_default="`STATIC_TOKEN`"),
    Option("bearer-auth.token", text, None, "A token."),
    Option("bearer-auth.issuer.endpoint.url", _token_endpoint, None,
           "`OAUTHBEARER`: address of the token endpoint.", complaint=_URL_COMPLAINT),
    Option("bearer-auth.client.id", text, None, "`OAUTHBEARER`: the client's id."),
    Option("bearer-auth.client.secret", text, None, "`OAUTHBEARER`: the client's secret."),
    Option("bearer-auth.scope", text, None, "`OAUTHBEARER`: the scope of the tokens."),
    Option("bearer-auth.token.provider", text, None,
           "`CUSTOM`: who gives the tokens, as for `properties.sasl.oauthbearer.token.provider` "
           "(see [security](security.md#tokens-of-your-own))."),
    Option("bearer-auth.token.provider.config", text, None, "`CUSTOM`: the text that the function is called with.", shown_default="an empty text"),
    Option(_CLUSTER, text, None,
           "With a token: which registry at this address is meant (`lsrc-...`), sent as `target-sr-cluster`."),
    Option(_POOL, text, None,
           "With a token: the identity pool, or several with commas, sent as `Confluent-Identity-Pool-Id`."),
    Option("ssl.truststore.location", text, None,
           "File with the certificates with which the registry's certificate is verified: PEM, or a PKCS#12 store.",
           shown_default="the system's"),
    Option("ssl.truststore.password", text, None, "Password of that store; a PEM file has none."),
    Option("ssl.keystore.location", text, None,
           "File with the client's private key and its certificates: PEM, or a PKCS#12 store."),
    Option("ssl.keystore.password", text, None, "Password of the private key in that file, or of the store."),
    Option("schema-registry.url", addresses, None, "Older name of `url`.", complaint=_URL_COMPLAINT),
    Option("schema-registry.subject", text, None, "Older name of `subject`."),
    Option("schema-registry.schema", text, None, "Older name of `schema`."),
)  # fmt: skip

_NEEDS = (
    ("ssl.keystore.password", "ssl.keystore.location"),
    ("ssl.truststore.password", "ssl.truststore.location"),
)


@dataclass(frozen=True)
class RegistrySettings:
    """What the options of one side say; see OPTIONS for their meaning."""

    access: Access
    schema: str | None
    auto_register: bool
    subject: str | None
    id_in_header: bool = False


def settings_of(spec: CodecSpec, format_name: str) -> RegistrySettings:
    """The settings of a side that has this format.

    Raises:
        OptionError: The address is missing, or two options contradict each other.
    """
    prefix = f"{spec.side}.{format_name}."
    value = spec.options
    url, subject, schema = (_either(value, name, prefix) for name in _OLDER)
    if url is None:
        raise missing_options(f"{prefix}url", f"{prefix}url", "http://localhost:8081")
    _check(value, prefix)
    access = Access(
        option_prefix=prefix,
        urls=url.urls,
        user_info=_user_info(value, url, prefix),
        token=value["bearer-auth.token"],
        login=_login(value, spec, prefix),
        cluster=value[_CLUSTER],
        identity_pool=value[_POOL],
        truststore=value["ssl.truststore.location"],
        truststore_password=value["ssl.truststore.password"],
        keystore=value["ssl.keystore.location"],
        keystore_password=value["ssl.keystore.password"],
    )
    is_by_token = access.token is not None or access.login is not None
    if access.user_info is not None and is_by_token:
        option = "bearer-auth.token" if access.login is None else "bearer-auth.credentials-source"
        raise OptionError(
            f"'{prefix}{option}' and a user with a password are both given: leave one out."
        )
    for name in (_CLUSTER, _POOL):
        if value[name] is not None and not is_by_token:
            raise OptionError(
                f"Option '{prefix}{name}' needs '{prefix}bearer-auth.credentials-source'."
            )
    return RegistrySettings(
        access,
        schema,
        value["auto.register.schemas"],
        subject,
        value["schema-id-location"] == _HEADER,
    )


def _either(value: Mapping[str, Any], name: str, prefix: str) -> Any:
    """The value of an option that has an older name."""
    new, old = value[name], value[f"schema-registry.{name}"]
    if new is not None and old is not None and new != old:
        raise OptionError(
            f"'{prefix}{name}' and '{prefix}schema-registry.{name}' mean the same and differ: leave "
            "one out."
        )
    return old if new is None else new


def _check(value: Mapping[str, Any], prefix: str) -> None:
    source = "basic-auth.credentials-source"
    for name, needs, needed in (
        (source, "basic-auth.user-info", value[source] == "USER_INFO"),
        *((name, needs, value[name] is not None) for name, needs in _NEEDS),
    ):
        if needed and value[needs] is None:
            raise OptionError(f"Option '{prefix}{needs}' is required with '{prefix}{name}'.")


def _login(value: Mapping[str, Any], spec: CodecSpec, prefix: str) -> TokenLogin | None:
    """Who gives tokens; None = nobody, but there may be one that is always the same."""
    chosen = value["bearer-auth.credentials-source"]
    for source, options in _OF_SOURCE.items():
        for name, is_needed in options.items():
            if source == chosen and is_needed and value[name] is None:
                raise OptionError(
                    f"Option '{prefix}{name}' is required with '{prefix}bearer-auth.credentials-source' = '{source}'."
                )
            if source != (chosen or _STATIC) and value[name] is not None:
                raise OptionError(
                    f"Option '{prefix}{name}' goes with '{prefix}bearer-auth.credentials-source' = '{source}', which is "
                    f"{'not given' if chosen is None else repr(chosen)}: set that, or leave the other out."
                )
    if chosen in (None, _STATIC):
        return None
    given = tuple((name, value[name]) for name in _OF_SOURCE[chosen] if value[name])
    if chosen == "SASL_OAUTHBEARER_INHERIT":
        return TokenLogin(chosen, given, spec.client)
    return TokenLogin(chosen, given)


def _user_info(value: Mapping[str, Any], url: Addresses, prefix: str) -> str | None:
    """User and password, from the one place where they stand."""
    given = cast("str | None", value["basic-auth.user-info"])
    source = value["basic-auth.credentials-source"]
    if given is not None and (url.user_info is not None or source == "URL"):
        raise OptionError(
            f"'{prefix}basic-auth.user-info' is given, and '{prefix}url' is to hold user and "
            "password as well: leave one out."
        )
    if source == "URL" and url.user_info is None:
        raise OptionError(
            f"'{prefix}basic-auth.credentials-source' = 'URL' needs user and password in "
            f"'{prefix}url': https://<user>:<password>@<host>."
        )
    return url.user_info if given is None else given

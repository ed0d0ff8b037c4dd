"""Certificates and keys for a registry's ``https`` address, from PEM files or PKCS#12 stores."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TypeVar

from pyspark_upsert_kafka.core import key_stores
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.registry.access import Access

_TRUST, _TRUST_PASSWORD = "ssl.truststore.location", "ssl.truststore.password"
_KEY, _KEY_PASSWORD = "ssl.keystore.location", "ssl.keystore.password"

T = TypeVar("T")


def tls_context(access: Access) -> ssl.SSLContext:
    """Whom to trust, and who we are.

    Raises:
        OptionError: A file is not there or is no store that is understood, or the password is wrong.
    """
    context = _trusting(access) if access.truststore is not None else ssl.create_default_context()
    if access.keystore is not None:
        _identify(context, access, access.keystore)
    return context


def _trusting(access: Access) -> ssl.SSLContext:
    option = access.option_prefix + _TRUST
    file = access.resolved(_TRUST, access.truststore or "")
    if not key_stores.is_pem(option, file):
        password = _password(access, _TRUST_PASSWORD, access.truststore_password)
        pem = key_stores.authorities(option, file, password)
        return ssl.create_default_context(cadata=pem)
    if access.truststore_password is not None:
        raise OptionError(
            f"Leave out '{access.option_prefix}{_TRUST_PASSWORD}': '{option}' names a PEM file, and its "
            "certificates have no password."
        )
    return _used(option, file, lambda: ssl.create_default_context(cafile=file))


def _identify(context: ssl.SSLContext, access: Access, keystore: str) -> None:
    option, file = access.option_prefix + _KEY, access.resolved(_KEY, keystore)
    password = _password(access, _KEY_PASSWORD, access.keystore_password)
    if key_stores.is_pem(option, file):
        # Without a password OpenSSL would ask for one on the terminal.
        _used(option, file, lambda: context.load_cert_chain(file, password=password or ""))
    else:
        with key_stores.as_file(key_stores.key_and_chain(option, file, password)) as pem:
            context.load_cert_chain(pem)


def _password(access: Access, name: str, value: str | None) -> str | None:
    return None if value is None else access.resolved(name, value)


def _used(option: str, file: str, use: Callable[[], T]) -> T:
    try:
        return use()
    except ssl.SSLError as error:
        raise OptionError(
            f"Option '{option}' names the file {file!r}, which cannot be used "
            f"({error.reason or error}). Is it whole, and is its password the right one?"
        ) from None

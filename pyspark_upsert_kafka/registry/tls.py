"""Certificates and keys for a registry's ``https`` address, from PEM files."""

from __future__ import annotations

import ssl

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.files import content_of
from pyspark_upsert_kafka.registry.access import Access

_TRUST, _KEY = "ssl.truststore.location", "ssl.keystore.location"

_TO_PEM = {
    _TRUST: "keytool -list -rfc -keystore <store> > <file>.pem",
    _KEY: (
        "keytool -importkeystore -srckeystore <store> -destkeystore <file>.p12 -deststoretype pkcs12 "
        "&& openssl pkcs12 -in <file>.p12 -out <file>.pem"
    ),
}


def tls_context(access: Access) -> ssl.SSLContext:
    """Whom to trust, and who we are.

    Raises:
        OptionError: A file is not there or is no PEM file, or the password is wrong.
    """
    context = ssl.create_default_context()
    if access.truststore is not None:
        file = _pem(access, _TRUST, access.truststore)
        try:
            context = ssl.create_default_context(cafile=file)
        except ssl.SSLError as error:
            raise _unfit(access, _TRUST, file, error) from None
    if access.keystore is not None:
        file = _pem(access, _KEY, access.keystore)
        # Without a password OpenSSL would ask for one on the terminal.
        password = access.resolved("ssl.keystore.password", access.keystore_password or "")
        try:
            context.load_cert_chain(file, password=password)
        except ssl.SSLError as error:
            raise _unfit(access, _KEY, file, error) from None
    return context


def _pem(access: Access, option: str, value: str) -> str:
    """The name of a file, once it is sure that it is a PEM file."""
    file = access.resolved(option, value)
    if b"-----BEGIN " not in content_of(access.option_prefix + option, file):
        raise OptionError(
            f"Option '{access.option_prefix}{option}' names the file {file!r}, which is no PEM file; Java's "
            f"key stores (JKS, PKCS#12) are not understood. To make one of them a PEM file: "
            f"{_TO_PEM[option]}"
        )
    return file


def _unfit(access: Access, option: str, file: str, error: ssl.SSLError) -> OptionError:
    return OptionError(
        f"Option '{access.option_prefix}{option}' names the file {file!r}, which cannot be used "
        f"({error.reason or error}). Is it whole, and is its password the right one?"
    )

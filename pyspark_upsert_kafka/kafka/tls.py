"""TLS by Python's module ``ssl``, as the properties of a Kafka client demand it.

kafka-python is given such a context: its own ones ignore what is missing, and take a key from a file alone. For librdkafka
one is opened to see what is wrong with a certificate.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pyspark_upsert_kafka.core import key_stores
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.kafka.failures import ClientErrors

T = TypeVar("T")

NAMES = frozenset({
    "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.cipher.suites",
    "ssl.crl.location", "ssl.endpoint.identification.algorithm", "ssl.key.location", "ssl.key.password",
    "ssl.key.pem", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location",
    "ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.certificates", "ssl.truststore.location",
    "ssl.truststore.password", "ssl.truststore.type",
})  # fmt: skip
"""The properties that `tls_context` follows."""


class _Socket(ssl.SSLSocket):
    """Takes note of what is wrong with a certificate, which kafka-python-ng does not report."""

    def do_handshake(self, block: bool = False) -> None:
        self._noted(lambda: super(_Socket, self).do_handshake(block))

    def recv(self, *arguments: Any) -> bytes:
        """With TLS 1.3 a server refuses the client's certificate only after the handshake."""
        return self._noted(lambda: super(_Socket, self).recv(*arguments))

    def _noted(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except (
            ssl.SSLWantReadError,
            ssl.SSLWantWriteError,
            ssl.SSLZeroReturnError,
            ssl.SSLEOFError,
        ):
            raise
        except ssl.SSLError as error:
            context = self.context
            if isinstance(context, _Context):
                reason = getattr(error, "verify_message", None) or error.reason or str(error)
                context.errors.add(
                    f"TLS with {self.server_hostname}: {_words(error, reason)}", security=True
                )
            raise


class _Context(ssl.SSLContext):
    """Knows where to report what is wrong with a certificate."""

    sslsocket_class = _Socket
    errors: ClientErrors


def _words(error: ssl.SSLError, reason: str) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {reason}"
    return reason.lower().replace("_", " ")


def tls_context(given: Mapping[str, str], errors: ClientErrors) -> ssl.SSLContext:
    """The certificates that are trusted, and the client's own certificate and key.

    Args:
        given: The properties, references replaced.
        errors: Gets what is wrong with a broker's certificate, or with ours in a broker's eyes.

    Raises:
        OptionError: A file, a certificate or a key cannot be used.
    """
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    context.errors = errors
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    check = given.get("ssl.endpoint.identification.algorithm", "https")
    context.check_hostname = check.lower() not in ("", "none")
    for store in ("ssl.keystore.type", "ssl.truststore.type"):
        key_stores.check_type(PREFIX + store, given.get(store, "PEM"))
    _trust(context, given)
    _identify(context, given)
    if "ssl.cipher.suites" in given:
        _used("ssl.cipher.suites", lambda: context.set_ciphers(given["ssl.cipher.suites"]))
    return context


def _trust(context: ssl.SSLContext, given: Mapping[str, str]) -> None:
    text = _first(given, "ssl.ca.pem", "ssl.truststore.certificates")
    file = _first(given, "ssl.ca.location", "ssl.truststore.location")
    if text is not None:
        name, pem = text
        _used(name, lambda: context.load_verify_locations(cadata=pem))
    elif file is not None:
        name, path = file
        if key_stores.is_pem(PREFIX + name, path):
            _used(name, lambda: context.load_verify_locations(path))
        else:
            pem = key_stores.authorities(PREFIX + name, path, given.get("ssl.truststore.password"))
            _used(name, lambda: context.load_verify_locations(cadata=pem))
    else:
        context.load_default_certs()
    if "ssl.crl.location" in given:
        _used("ssl.crl.location", lambda: context.load_verify_locations(given["ssl.crl.location"]))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _identify(context: ssl.SSLContext, given: Mapping[str, str]) -> None:
    chain = _first(given, "ssl.certificate.pem", "ssl.keystore.certificate.chain")
    key = _first(given, "ssl.key.pem", "ssl.keystore.key")
    password = given.get("ssl.key.password", "")  # without one OpenSSL would ask on the terminal
    if chain is not None and key is not None:
        _load_text(context, key[0], f"{key[1]}\n{chain[1]}", password)
    elif "ssl.keystore.location" in given:
        name, path = "ssl.keystore.location", given["ssl.keystore.location"]
        if key_stores.is_pem(PREFIX + name, path):
            _used(name, lambda: context.load_cert_chain(path, password=password))
        else:
            store_password = given.get("ssl.keystore.password")
            pem = key_stores.key_and_chain(PREFIX + name, path, store_password)
            _load_text(context, name, pem, "")
    elif "ssl.certificate.location" in given:
        name, path = "ssl.certificate.location", given["ssl.certificate.location"]
        key_file = given.get("ssl.key.location")
        _used(name, lambda: context.load_cert_chain(path, key_file, password=password))
    elif chain is not None or key is not None or "ssl.key.location" in given:
        raise OptionError(
            f"A certificate and its key belong together: set '{PREFIX}ssl.certificate.location' and "
            f"'{PREFIX}ssl.key.location', or '{PREFIX}ssl.keystore.certificate.chain' and '{PREFIX}ssl.keystore.key'."
        )


def _first(given: Mapping[str, str], *names: str) -> tuple[str, str] | None:
    """The first of these properties that is given, and its value."""
    return next(((name, given[name]) for name in names if name in given), None)


def _load_text(context: ssl.SSLContext, name: str, pem: str, password: str) -> None:
    with key_stores.as_file(pem) as file:
        _used(name, lambda: context.load_cert_chain(file, password=password))


def _used(name: str, use: Callable[[], object]) -> None:
    try:
        use()
    except ssl.SSLError as error:
        raise OptionError(
            f"Option '{PREFIX}{name}' cannot be used ({getattr(error, 'reason', None) or error}). Is it whole, and is its password "
            "the right one?"
        ) from None
    except (OSError, ValueError) as error:
        raise OptionError(
            f"Option '{PREFIX}{name}' cannot be used: {getattr(error, 'strerror', None) or error}. A file must be "
            "there on the driver and on each executor."
        ) from None

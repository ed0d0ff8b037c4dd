"""Certificates for tests: a certificate authority, and certificates that it signs."""

from __future__ import annotations

import datetime as dt
import secrets
from pathlib import Path
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError

_NO_HOST = "client.invalid"
"""Java rejects a certificate whose list of hosts is empty."""


class LocalCertificates:
    """A private certificate authority, and certificates that it signs, in PEM files.

    It needs the package trustme: ``pip install 'pyspark-upsert-kafka[local-tls]'``.

    Args:
        folder: The folder for the files; it must exist. The keys in the files have no password.

    Raises:
        OptionError: The package trustme is not installed.

    Example::

        from tempfile import TemporaryDirectory

        from pyspark_upsert_kafka import LocalCertificates, LocalKafka, LocalSecurity

        with TemporaryDirectory() as folder:
            certificates = LocalCertificates(folder)
            with LocalKafka(security=LocalSecurity(certificates=certificates)) as kafka:
                options = {
                    "properties.bootstrap.servers": kafka.address("SSL"),
                    "properties.security.protocol": "SSL",
                    "properties.ssl.ca.location": str(certificates.authority),
                    "properties.ssl.keystore.type": "PEM",
                    "properties.ssl.keystore.location": str(certificates.issue(user="ana")),
                }
    """

    def __init__(self, folder: Path | str) -> None:
        try:
            import trustme
        except ImportError:
            raise OptionError(
                "LocalCertificates needs a package that is not installed: "
                "pip install 'pyspark-upsert-kafka[local-tls]'"
            ) from None
        self._folder = Path(folder)
        self._authority = trustme.CA()
        self.authority = self._written("authority", self._authority.cert_pem.bytes())
        """The file with the authority's certificate, which clients must trust."""

    def __repr__(self) -> str:
        return f"LocalCertificates({str(self._folder)!r})"

    def issue(
        self,
        *,
        host: str | None = None,
        user: str | None = None,
        not_after: dt.datetime | None = None,
    ) -> Path:
        """Makes a file with a new key and its certificate, in the format of Java's PEM key stores (KIP-651).

        Args:
            host: For a server: its name or address.
            user: For a client: the user's name, which is the certificate's ``CN``.
            not_after: The end of its validity, with a time zone. A time in the past makes an expired certificate.
        """
        issued = self._authority.issue_cert(
            host or _NO_HOST, common_name=user or host, not_after=not_after
        )
        chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
        return self._written("server" if host else "client", _pkcs8(issued) + chain)

    def _written(self, name: str, content: bytes) -> Path:
        file = self._folder / f"{name}-{secrets.token_hex(4)}.pem"
        file.touch(mode=0o600)
        file.write_bytes(content)
        return file


def _pkcs8(issued: Any) -> bytes:
    """The key in the only form that Java reads."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

"""Java's key stores and trust stores as PEM: PKCS#12 is read; JKS is refused, and the error says how to convert it.

The first bytes of a file say what it is, not the type in the options: Java too opens a PKCS#12 store of type JKS (JEP 229).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError

_JKS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_PKCS12 = b"\x30"  # a sequence in DER begins with it

_TYPES = ("JKS", "PKCS12", "PEM")

_PEM_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")


def check_type(option: str, value: str) -> None:
    """Raises an OptionError for a type of store that cannot be read.

    Args:
        option: The option's name.
        value: The type.
    """
    if value.upper() not in _TYPES:
        raise OptionError(
            f"Option '{option}': expected one of {', '.join(_TYPES)}, but is {value!r}."
        )


def is_pem(option: str, file: str) -> bool:
    """Whether a store is a PEM file (KIP-651); else it is PKCS#12.

    Args:
        option: The option that names it.
        file: Its path.

    Raises:
        OptionError: The file is not there, or it is neither.
    """
    content = content_of(option, file)
    if b"-----BEGIN " in content:
        return True
    if content.startswith(_JKS):
        raise OptionError(
            f"Option '{option}' names the file {file!r}, a JKS store, which only Java reads. To convert "
            f"it: keytool -importkeystore -srckeystore {file} -destkeystore <file>.p12 -deststoretype pkcs12"
        )
    if content.startswith(_PKCS12):
        return False
    raise OptionError(
        f"Option '{option}' names the file {file!r}, which is neither a PEM nor a PKCS#12 file."
    )


def authorities(option: str, file: str, password: str | None) -> str:
    """The certificates of a PKCS#12 trust store, as PEM.

    Raises:
        OptionError: The file cannot be read, holds no certificate, or the package cryptography is missing.
    """
    from_store = _pkcs12(option, file, password)
    if not from_store.additional_certs:
        raise OptionError(
            f"Option '{option}' names the file {file!r}, which holds no certificate to trust."
        )
    return _pem([entry.certificate for entry in from_store.additional_certs])


def key_and_chain(option: str, file: str, password: str | None) -> str:
    """The key, without a password, and the certificates of a PKCS#12 key store, as PEM.

    Raises:
        OptionError: The file cannot be read, holds no key, or the package cryptography is missing.
    """
    from_store = _pkcs12(option, file, password)
    if from_store.key is None or from_store.cert is None:
        raise OptionError(f"Option '{option}' names the file {file!r}, which holds no key.")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = from_store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = [from_store.cert, *from_store.additional_certs]
    return str(key.decode()) + _pem([entry.certificate for entry in chain])


@contextmanager
def as_file(pem: str) -> Iterator[Path]:
    """A key as a file that is deleted afterwards: Python's ``ssl`` reads keys from files only."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "identity.pem")
        file.touch(mode=0o600)
        file.write_text(pem, encoding="utf-8")
        yield file


def _pkcs12(option: str, file: str, password: str | None) -> Any:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise OptionError(
            f"Option '{option}' names the file {file!r}, a PKCS#12 store, which needs a package "
            "that is not installed: pip install 'pyspark-upsert-kafka[pkcs12]'. Or convert it to PEM: "
            f"openssl pkcs12 -in {file} -out <file>.pem"
        ) from None
    try:
        return pkcs12.load_pkcs12(
            content_of(option, file), None if password is None else password.encode()
        )
    except ValueError as error:
        raise OptionError(
            f"Option '{option}' names the file {file!r}, which cannot be read as PKCS#12 ({error}). Is it "
            f"whole, and is '{option.replace('location', 'password')}' the right one?"
        ) from None


def _pem(certificates: list[Any]) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def check_pem_files(prefix: str, given: Mapping[str, str]) -> None:
    """Checks that the PEM files of librdkafka's options can be read: librdkafka's own error names no file.

    Args:
        prefix: What the names of the options begin with.
        given: The options, without the prefix.

    Raises:
        OptionError: A file cannot be read.
    """
    for name in _PEM_FILES:
        file = given.get(name, "")
        if (
            file not in ("", "probe") and not Path(file).is_dir()
        ):  # both may be of `ssl.ca.location`
            content_of(prefix + name, file)


def content_of(option: str, file: str) -> bytes:
    """What is in a file.

    Args:
        option: The whole name of the option that names it.
        file: Its path.

    Raises:
        OptionError: It cannot be read.
    """
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise OptionError(
            f"Option '{option}' names the file {file!r}: {error.strerror}. It must be there on the "
            "driver and on each executor."
        ) from None

"""Java's key stores and trust stores: PKCS#12 is read, the rest is refused with a remedy."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)

from pyspark_upsert_kafka.core import key_stores
from pyspark_upsert_kafka.core.errors import OptionError

TRUST, KEY = "properties.ssl.truststore.location", "properties.ssl.keystore.location"
PASSWORD = "pa55word"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stores of each kind."""
    folder = tmp_path_factory.mktemp("stores")
    authority = trustme.CA()
    issued = authority.issue_cert("ana@example.org")
    ca = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    certificate = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    locked = BestAvailableEncryption(PASSWORD.encode())
    trust = serialize_java_truststore([PKCS12Certificate(ca, b"ca")], locked)
    (folder / "trust.p12").write_bytes(trust)
    (folder / "key.p12").write_bytes(
        serialize_key_and_certificates(b"me", key, certificate, [ca], locked)
    )
    (folder / "ca.pem").write_bytes(b"# whom to trust\n" + authority.cert_pem.bytes())
    (folder / "old.jks").write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    (folder / "old.jceks").write_bytes(b"\xce\xce\xce\xce\x00\x00\x00\x02")
    (folder / "empty").touch()
    return folder


def test_certificates_and_keys_come_as_pem(stores):
    """All of a trust store; of a key store the key, without a password, then its chain."""
    trusted = key_stores.authorities(TRUST, str(stores / "trust.p12"), PASSWORD)
    assert trusted in (stores / "ca.pem").read_text().replace("\r\n", "\n")

    pem = key_stores.key_and_chain(KEY, str(stores / "key.p12"), PASSWORD)
    assert pem.startswith("-----BEGIN PRIVATE KEY-----")
    assert pem.endswith(trusted)
    assert pem.count("-----BEGIN CERTIFICATE-----") == 2


def test_a_key_is_a_file_for_a_moment_that_others_cannot_read() -> None:
    """Whatever files are like otherwise."""
    before = os.umask(0)
    try:
        with key_stores.as_file("a key") as file:
            assert file.read_text() == "a key"
            assert file.stat().st_mode & 0o7777 == 0o600
    finally:
        os.umask(before)

    assert not file.exists()


@pytest.mark.parametrize(("file", "pem"), [("ca.pem", True), ("trust.p12", False)])
def test_the_content_says_what_a_store_is(stores, file, pem):
    """Java opens a PKCS#12 store that is called ``JKS`` too."""
    assert key_stores.is_pem(TRUST, str(stores / file)) is pem


@pytest.mark.parametrize(
    ("file", "remedy"),
    [
        ("old.jks", "a JKS store.* keytool -importkeystore -srckeystore .*old.jks .*-deststoretype pkcs12"),
        ("old.jceks", "keytool -importkeystore"),
        ("empty", "neither a PEM nor a PKCS#12 file"),
        ("no-such-file", "No such file or directory. It must be there on the driver and on each executor"),
        (".", "Is a directory"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_told_with_the_option(stores, file, remedy):
    """And with the command that makes it one that can."""
    with pytest.raises(OptionError, match=rf"^Option '{TRUST}' names the file .*{remedy}"):
        key_stores.is_pem(TRUST, str(stores / file))


@pytest.mark.parametrize("password", [None, "", "wrong"])
@pytest.mark.parametrize("read", [key_stores.authorities, key_stores.key_and_chain])
def test_a_wrong_password_is_told_without_it(stores, read, password):
    """With the option that has it."""
    with pytest.raises(
        OptionError, match=r"is 'properties\.ssl\.keystore\.password' the right one"
    ) as error:
        read(KEY, str(stores / "key.p12"), password)

    assert "wrong" not in str(error.value)


def test_a_store_without_what_is_looked_for(stores):
    """A trust store has no key; what has a key alone is nobody to trust."""
    with pytest.raises(OptionError, match="holds no key"):
        key_stores.key_and_chain(KEY, str(stores / "trust.p12"), PASSWORD)


def test_the_missing_package_is_said_with_two_remedies(stores, monkeypatch):
    """It is an extra, and OpenSSL does without it."""
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)

    with pytest.raises(OptionError, match=r"'pyspark-upsert-kafka\[pkcs12\]'.* openssl pkcs12 -in"):
        key_stores.authorities(TRUST, str(stores / "trust.p12"), PASSWORD)


def test_types_of_stores():
    """What Java calls them, in either case; others need a JVM."""
    for known in ("jks", "PKCS12", "PEM"):
        key_stores.check_type("ssl.keystore.type", known)
    with pytest.raises(OptionError, match="expected one of JKS, PKCS12, PEM, but is 'BCFKS'"):
        key_stores.check_type("ssl.keystore.type", "BCFKS")


def test_pem_files_must_be_there(tmp_path: Path) -> None:
    """Each of librdkafka's options is checked; certificates to trust may be a folder, or what librdkafka looks for."""
    file = tmp_path / "ca.pem"
    file.touch()

    for trusted in (str(file), str(tmp_path), "probe", ""):
        key_stores.check_pem_files("properties.", {"ssl.ca.location": trusted})
    for name in ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location"):
        with pytest.raises(
            OptionError, match=f"^Option 'properties.{name}' names the file '/no.pem': No such"
        ):
            key_stores.check_pem_files("properties.", {name: "/no.pem"})

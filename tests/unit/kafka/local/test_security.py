"""How LocalKafka is told whom to let in."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka import LocalAcl, LocalCertificates, LocalKafka, LocalSecurity, OptionError
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.logins.jaas import login


def test_what_is_given_decides_which_addresses_there_are(tmp_path):
    """Users log in by SASL, certificates make TLS, and both together the two in one."""
    certificates = LocalCertificates(tmp_path)
    users = {"ana": "open sesame"}

    assert LocalSecurity(users=users).protocols == ("SASL_PLAINTEXT",)
    assert LocalSecurity(certificates=certificates).protocols == ("SSL",)
    both = LocalSecurity(users=users, certificates=certificates)
    assert both.protocols == ("SASL_PLAINTEXT", "SASL_SSL", "SSL")
    with pytest.raises(OptionError, match="users, certificates, or both"):
        LocalSecurity()


def test_names_and_passwords_are_quoted():
    """Whatever they are made of, the broker reads them as they are."""
    users = {"a na": 'p"w\\\n;', "bob": "x"}
    settings = LocalSecurity(users=users).settings()

    found = login(settings["listener.name.sasl_plaintext.plain.sasl.jaas.config"])
    assert found is not None
    assert found.given == {"user_a na": 'p"w\\\n;', "user_bob": "x"}


def test_without_acls_everybody_may_do_everything():
    """An empty list is another thing: nobody may do anything."""
    users = {"ana": "x"}

    assert "authorizer.class.name" not in LocalSecurity(users=users).settings()
    assert "authorizer.class.name" in LocalSecurity(users=users, acls=[]).settings()


def test_no_password_is_shown():
    """Neither by the security nor by the broker that has it."""
    security = LocalSecurity(users={"ana": "geheim"}, acls=[LocalAcl("ana", "READ", "topic", "*")])

    assert "geheim" not in repr(security) + repr(LocalKafka(security=security))


def test_addresses_that_are_not_there():
    """Of a protocol that is not offered, and before the start."""
    kafka = LocalKafka(security=LocalSecurity(users={"ana": "x"}))

    with pytest.raises(OptionError, match="no address for 'SSL', only for SASL_PLAINTEXT"):
        kafka.address("SSL")
    with pytest.raises(BrokerError, match="before it starts"):
        kafka.address("SASL_PLAINTEXT")
    with pytest.raises(OptionError, match="only for PLAINTEXT"):
        LocalKafka().address("SSL")


def test_files_of_certificates_are_for_their_owner(tmp_path):
    """They hold keys without a password."""
    certificates = LocalCertificates(tmp_path)
    files = [
        certificates.authority,
        certificates.issue(user="../ana"),
        certificates.issue(host="127.0.0.1"),
    ]

    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert {file.parent for file in files} == {tmp_path}

"""Logins to a real registry by tokens that an OpenID Connect provider has signed: Apicurio, by Confluent's API."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from functools import partial

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from pyspark.sql.types import LongType, StringType

from pyspark_upsert_kafka.core.errors import BrokerError
from tests.local_registry import LocalRegistry, Registry
from tests.token_endpoint import TokenEndpoint
from tests.unit.formats.json.codecs import batch, columns
from tests.unit.registry.avro_confluent_codecs import decoder, encoder

USER = columns(id=LongType(), name=StringType())
SOURCE = "bearer-auth.credentials-source"
CLIENT = ("spark", "geheim")


class Provider(TokenEndpoint):
    """A provider that signs its tokens.

    Args:
        key: By which it signs.
        group: The rights of who has one of them.
    """

    def __init__(self, key: rsa.RSAPrivateKey, group: str) -> None:
        super().__init__("ana", CLIENT)
        self._key, self._group = key, group

    def token(self) -> str:
        """Another one."""
        now = int(time.time())
        claims = {"sub": "ana", "iat": now, "exp": now + 3600, "groups": [self._group]}
        signed = ".".join(map(_encoded, ({"alg": "RS256", "typ": "JWT"}, claims)))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def _encoded(part: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


new_key = partial(rsa.generate_private_key, 65537, 2048)


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    """Of the provider that the registry trusts."""
    return new_key()


@pytest.fixture(scope="module")
def guarded(key: rsa.RSAPrivateKey) -> Iterator[Registry]:
    """A registry that lets in who has a token of that provider."""
    encoding = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    public = key.public_key().public_bytes(*encoding)
    with LocalRegistry(base64.b64encode(public).decode()) as registry:
        yield registry


def login(endpoint: TokenEndpoint) -> dict[str, str]:
    """The options of who gets tokens there."""
    return {
        SOURCE: "OAUTHBEARER",
        "bearer-auth.issuer.endpoint.url": endpoint.url,
        "bearer-auth.client.id": CLIENT[0],
        "bearer-auth.client.secret": CLIENT[1],
    }


@pytest.mark.long("a registry of its own")
def test_who_has_a_token_may_read_and_write(guarded, key, topic):
    """Schemas are registered and read with it; nobody is let in without, or with that of somebody else."""
    rows = batch(USER, (1, "a"))
    with Provider(key, "sr-developer") as endpoint:
        written = encoder(guarded.url, USER, topics=(topic,), options=login(endpoint)).encode(rows)
        found = decoder(guarded.url, USER, topics=(topic,), options=login(endpoint)).decode(written)
    assert (found.rows.to_pylist(), found.errors) == (rows.to_pylist(), {})

    with pytest.raises(
        BrokerError, match=r"HTTP 401.*'value\.avro-confluent\.bearer-auth\.token': none is given"
    ):
        decoder(guarded.url, USER, topics=(topic,)).decode([b"\0\0\0\1\0"])
    with Provider(new_key(), "sr-developer") as stranger:
        given = login(stranger)
        with pytest.raises(
            BrokerError, match=r"HTTP 401.*It is refused, and so is the one"
        ) as error:
            decoder(guarded.url, USER, topics=(topic,), options=given).decode([b"\0\0\0\2\0"])
    assert "eyJ" not in str(error.value)


@pytest.mark.long("a registry of its own")
def test_who_may_only_read_registers_nothing(guarded, key, topic):
    """The registry says 403: the error says with whose token."""
    with Provider(key, "sr-readonly") as endpoint:
        writing = encoder(guarded.url, USER, topics=(topic,), options=login(endpoint))
        with pytest.raises(BrokerError, match=r"HTTP 403.*It is refused: is it for this registry"):
            writing.encode(batch(USER, (1, "a")))

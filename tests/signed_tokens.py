"""A provider of JSON Web Tokens with a signature that a broker checks: the key is in a file, so that processes share it."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

TOKEN_PROVIDER = "tests.signed_tokens:token"
ENVIRONMENT = {"UPSERT_KAFKA_TOKEN_PROVIDERS": "tests.signed_tokens"}
ISSUER, AUDIENCE = "https://tokens.example", "kafka"


def make_key(folder: Path, name: str = "key") -> Path:
    """A new private key in a file, and its public one as a JSON Web Key Set beside it, with the suffix ``.jwks``."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    file = folder / f"{name}.pem"
    kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file.write_bytes(key.private_bytes(*kind, serialization.NoEncryption()))
    public = key.public_key().public_numbers()
    entry = {"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "n": _number(public.n), "e": _number(public.e)}  # fmt: skip
    file.with_suffix(".jwks").write_text(json.dumps({"keys": [entry]}))
    return file


def token(config: str) -> tuple[str, float]:
    """A token by the key in ``key``, of ``life`` seconds, made by somebody whose clock is ``behind`` by so many seconds.

    ``aud``, ``iss`` and ``user`` are what it says. In the file ``calls`` is a line for each call, with the process.
    """
    given = dict(entry.split("=", 1) for entry in config.split())
    if "calls" in given:
        with Path(given["calls"]).open("a") as calls:
            calls.write(f"{os.getpid()}\n")
    now, life_s = time.time(), float(given.get("life", "3600"))
    made_at = now - float(given.get("behind", "0"))
    claims = {
        "sub": given.get("user", "ana"),
        "iss": given.get("iss", ISSUER),
        "aud": given.get("aud", AUDIENCE),
        "iat": int(made_at),
        "exp": int(made_at + life_s),
    }
    text = f"{_part({'alg': 'RS256', 'typ': 'JWT', 'kid': '1'})}.{_part(claims)}"
    signature = _key(given["key"]).sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{text}.{_encoded(signature)}", now + life_s


def login(config: str) -> dict[str, str]:
    """The properties of a client that logs in so."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": TOKEN_PROVIDER,
        "sasl.oauthbearer.config": config,
    }


def broker_settings(key: Path, session_s: float) -> dict[str, str]:
    """Settings of a `LocalKafka` with users that takes such tokens, and ends sessions after a time."""
    package = "org.apache.kafka.common.security.oauthbearer"
    listener = "listener.name.sasl_plaintext.oauthbearer"
    return {
        f"{listener}.sasl.server.callback.handler.class": f"{package}.OAuthBearerValidatorCallbackHandler",
        f"{listener}.connections.max.reauth.ms": str(int(session_s * 1000)),
        "sasl.oauthbearer.jwks.endpoint.url": _url_of_keys(key),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }


def broker_flags(key: Path) -> str:
    """What `LOCAL_KAFKA_OPTS` says for that: Kafka reads no address that it is not told of when it starts."""
    return f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={_url_of_keys(key)}"


def _url_of_keys(key: Path) -> str:
    return f"file:{key.with_suffix('.jwks')}"


@cache
def _key(file: str) -> rsa.RSAPrivateKey:
    key = serialization.load_pem_private_key(Path(file).read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _part(part: Mapping[str, object]) -> str:
    return _encoded(json.dumps(part).encode())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

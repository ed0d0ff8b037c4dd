"""A provider of tokens for tests: what it does is told by the text of ``sasl.oauthbearer.config``, or by the test."""

from __future__ import annotations

import base64
import json
import time
from collections import defaultdict
from collections.abc import Mapping

TOKEN_PROVIDER = "tests.given_tokens:token"
ENVIRONMENT = {"UPSERT_KAFKA_TOKEN_PROVIDERS": "tests.given_tokens"}

calls: defaultdict[str, int] = defaultdict(int)
"""How often it was called, by the text."""

failing: dict[str, Exception] = {}
"""What it raises, by the text."""


def token(config: str) -> tuple[str, float]:
    """A token without a signature for the user ``user``, of ``life`` seconds, or a text for those who know what it means; other entries tell calls apart."""
    calls[config] += 1
    if config in failing:
        raise failing[config]
    given = dict(entry.split("=", 1) for entry in config.split())
    now = time.time()
    expires_at = now + float(given.get("life", "3600"))
    if "opaque" in given:
        return f"{given['opaque']}-{calls[config]}", expires_at
    claims = {"sub": given.get("user", "ana"), "iat": now, "exp": expires_at}
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}.", expires_at


def login(config: str = "") -> dict[str, str]:
    """The properties of a client that logs in so."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": TOKEN_PROVIDER,
        "sasl.oauthbearer.config": config,
    }


def _encoded(part: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()

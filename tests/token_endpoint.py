"""A small OpenID Connect provider: it knows one client, and gives it tokens without a signature."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import parse_qs

from tests.http_server import Answer, Asked, http_server


class TokenEndpoint:
    """The provider, at a free port of 127.0.0.1.

    Args:
        user: The ``sub`` of its tokens.
        client: Id and secret of the client that it knows.
        life_s: How long a token is valid, in seconds.

    Example::

        with TokenEndpoint("ana", ("id", "secret")) as endpoint:
            options = {"properties.sasl.oauthbearer.token.endpoint.url": endpoint.url}
    """

    def __init__(self, user: str, client: tuple[str, str], life_s: float = 3600) -> None:
        self.user, self.client, self.life_s = user, client, life_s
        self.refusal: bytes | None = None
        """What it sends to a client that it does not know, in place of a code and the form."""
        self.reason = "Unauthorized"
        self.forms: list[dict[str, list[str]]] = []
        """What it was asked, refused or not."""
        self._server = http_server(self._answer)

    def _answer(self, asked: Asked) -> Answer:
        form = asked.body.decode()
        self.forms.append(parse_qs(form))
        known = "Basic " + base64.b64encode(":".join(self.client).encode()).decode()
        if asked.headers["Authorization"] == known:
            answer = {"access_token": self.token(), "expires_in": self.life_s}
            return Answer(200, {**answer, "token_type": "bearer"})
        refused = {"error": "invalid_client", "error_description": form}
        body = json.dumps(refused).encode() if self.refusal is None else self.refusal
        return Answer(401, body, {"Content-Type": "application/json"}, self.reason)

    def token(self) -> str:
        """A new token (RFC 7515, appendix A.5)."""
        now = time.time()
        claims = {"sub": self.user, "iat": now, "exp": now + self.life_s, "jti": len(self.forms)}
        parts = (
            base64.urlsafe_b64encode(json.dumps(part).encode())
            for part in ({"alg": "none"}, claims)
        )
        return ".".join(part.rstrip(b"=").decode() for part in parts) + "."

    def __enter__(self) -> TokenEndpoint:  # noqa: PYI034 - typing.Self needs Python 3.11
        self.url = f"{self._server.__enter__()}/token"
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__(*error)

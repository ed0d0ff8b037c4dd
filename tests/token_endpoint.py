"""A small OpenID Connect provider: it knows one client, and gives it tokens without a signature."""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs


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
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                outer.forms.append(parse_qs(form))
                known = "Basic " + base64.b64encode(":".join(outer.client).encode()).decode()
                if self.headers["Authorization"] == known:
                    answer: dict[str, object] = {
                        "access_token": outer.token(), "expires_in": outer.life_s, "token_type": "bearer",
                    }  # fmt: skip
                    self._answer(200, answer)
                else:
                    self._answer(
                        401, {"error": "invalid_client", "error_description": form}, outer.refusal
                    )

            def _answer(
                self, code: int, answer: dict[str, object], instead: bytes | None = None
            ) -> None:
                body = json.dumps(answer).encode() if instead is None else instead
                self.send_response(code, None if code == 200 else outer.reason)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/token"

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
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

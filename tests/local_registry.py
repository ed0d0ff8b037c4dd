"""A real schema registry on this machine: Apicurio Registry, in memory, which speaks Confluent's API."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from pyspark_upsert_kafka.kafka.local.broker import environment, find_java
from pyspark_upsert_kafka.kafka.local.guard import BrokerGuard
from pyspark_upsert_kafka.kafka.local.jars import broker_jars
from pyspark_upsert_kafka.kafka.local.ports import HOST, free_port

_START_SECONDS = 120.0


@dataclass(frozen=True)
class _Release:
    """A release of the registry.

    Args:
        lock: The file that says what is downloaded.
        jar: The name of what is run in it.
        auth: What its own settings of logins begin with.
        tokens: The settings by which it asks for tokens at all.
    """

    lock: str
    jar: str
    auth: str
    tokens: tuple[str, ...]

    def settings(self, public_key: str) -> tuple[str, ...]:
        """Those by which it lets in who has a token that this key has signed."""
        return (
            *self.tokens,
            f"-D{self.auth}.role-based-authorization=true",
            "-Dquarkus.oidc.application-type=service",
            f"-Dquarkus.oidc.public-key={public_key}",
        )


_FOR_JAVA = {
    21: _Release("apicurio-registry-3.3.3.lock", "quarkus-run.jar", "apicurio.auth", ("-Dquarkus.oidc.tenant-enabled=true",)),
    17: _Release(
        "apicurio-registry-2.6.13.lock",
        "*-runner.jar",
        "registry.auth",
        ("-Dregistry.auth.enabled=true", "-Dquarkus.oidc.auth-server-url="),
    ),
}  # fmt: skip
"""The newest release that a Java runs."""


def _release(java: str) -> _Release:
    run = subprocess.run(
        [java, "-version"], capture_output=True, text=True, check=True, env=environment()
    )
    found = re.search(r'version "(\d+)', run.stderr)
    version = int(found[1]) if found else 17
    return next(release for needed, release in _FOR_JAVA.items() if version >= needed)


class Registry:
    """A registry that runs, and what tests do with it by a plain client.

    Args:
        url: Its address.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._opener = build_opener(ProxyHandler({}))

    def ask(self, method: str, path: str, **body: Any) -> Any:
        """What the registry answers, by a plain client."""
        request = Request(
            self.url + path,
            json.dumps(body).encode() if body else None,
            {"Content-Type": "application/vnd.schemaregistry.v1+json"},
            method=method,
        )
        with self._opener.open(request, timeout=30) as response:
            return json.load(response)

    def register(self, subject: str, schema: Any, **more: Any) -> int:
        """Registers a schema, text or what such a text is parsed to; its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return int(self.ask("POST", f"/subjects/{subject}/versions", schema=text, **more)["id"])


class LocalRegistry(Registry):
    """A registry that stops, and whose folder is deleted, however the program ends.

    With Java 21 or newer it is Apicurio 3, else 2.6. The first use downloads it, some 150 MB, into the user's cache folder.

    Args:
        public_key: Of who signs the tokens by which it lets in, each with the rights that its ``groups`` have: a public key in
            base64; None = it lets everybody in.
    """

    def __init__(self, public_key: str | None = None) -> None:
        self._public_key = public_key
        super().__init__(f"http://{HOST}:{free_port()}/apis/ccompat/v7")

    def __enter__(self) -> LocalRegistry:  # noqa: PYI034 - typing.Self needs Python 3.11
        java = find_java()
        release = _release(java)
        lock = Path(__file__).with_name(release.lock)
        archive = next(broker_jars(lock).glob("*.tar.gz"))
        folder = Path(tempfile.mkdtemp(prefix="local-registry-"))
        self._log = folder / "registry.log"
        self._guard = BrokerGuard.over(folder, self._log, environment())
        try:
            with tarfile.open(archive) as content:
                content.extractall(folder, filter="data")
            port = urlsplit(self.url).port
            settings: tuple[str, ...] = (
                f"-Dquarkus.http.host={HOST}",
                f"-Dquarkus.http.port={port}",
            )
            if self._public_key is not None:
                settings += release.settings(self._public_key)
            (jar,) = folder.glob(release.jar)
            flags = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")
            self._guard.run([java, *flags, *settings, "-jar", str(jar)])
            self._wait()
        except BaseException:
            self._guard.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._guard.close()

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.ask("GET", "/subjects")
            except (URLError, ConnectionError) as error:
                code = error.code if isinstance(error, HTTPError) else 503
                if code == 401 and self._public_key is not None:
                    return
                is_waiting = self._guard.exit_code() is None and time.monotonic() < deadline
                if code >= 500 and is_waiting:  # Apicurio 3 says 500 until its storage is there
                    time.sleep(0.1)
                    continue
                said = self._log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise RuntimeError(f"The registry did not start ({error}): {said}") from error
            return

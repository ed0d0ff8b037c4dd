"""The jars of the local broker: named in a lock file, downloaded once, checked at every start."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import platformdirs

from pyspark_upsert_kafka.core.errors import BrokerError

_LOCK = Path(__file__).with_name("kafka-4.3.1.lock")
MAVEN_CENTRAL = "https://repo1.maven.org/maven2/"
_DOWNLOADS_AT_ONCE = 8
_ATTEMPTS = 3
_PAUSE_SECONDS = 1.0
_TIMEOUT_SECONDS = 30.0

_log = logging.getLogger("pyspark_upsert_kafka")


@dataclass(frozen=True)
class Jar:
    """One line of the lock file.

    Args:
        sha256: What the content hashes to, in hexadecimal.
        path: Where a Maven repository keeps it.
    """

    sha256: str
    path: str

    @property
    def name(self) -> str:
        """The file name, ``kafka-clients-4.3.1.jar``."""
        return self.path.rpartition("/")[2]

    def check(self, content: bytes) -> None:
        """Refuse what is not the file of the lock: cut short, changed, or a network's login page.

        Raises:
            OSError: The hash differs.
        """
        seen = hashlib.sha256(content).hexdigest()
        if seen != self.sha256:
            raise OSError(f"{len(content)} bytes with SHA-256 {seen} instead of {self.sha256}")

    def is_in(self, folder: Path) -> bool:
        """Whether the folder holds this jar, whole and unchanged."""
        try:
            self.check((folder / self.name).read_bytes())
        except OSError:
            return False
        return True


def broker_jars(
    lock: Path = _LOCK, folder: Path | None = None, repository: str | None = None
) -> Path:
    """The folder with all jars of Apache Kafka; what is missing or damaged is downloaded first.

    Args:
        lock: The list of the jars and their hashes.
        folder: Where they are kept; None = in the user's cache folder.
        repository: Address of a Maven repository; None = the environment variable
            ``MAVEN_CENTRAL_URL``, or else Maven Central itself.

    Raises:
        BrokerError: A jar cannot be downloaded or kept, or is not the one of the lock file.
    """
    folder = folder or platformdirs.user_cache_path("pyspark-upsert-kafka") / lock.stem
    missing = [jar for jar in _read(lock) if not jar.is_in(folder)]
    if missing:
        mirror = _checked(repository or os.environ.get("MAVEN_CENTRAL_URL"))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _download(missing, folder, mirror)
        except OSError as error:
            raise BrokerError(
                f"Apache Kafka cannot be kept in {folder} ({error.strerror}). Let the environment variable XDG_CACHE_HOME "
                "name a folder in which this user may write."
            ) from error
    return folder


def _read(lock: Path) -> list[Jar]:
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [Jar(*line.split()) for line in lines if line and not line.startswith("#")]


def _checked(repository: str | None) -> str:
    repository = repository or MAVEN_CENTRAL
    address = urlsplit(repository)
    if address.scheme not in ("http", "https") or not address.hostname or "@" in address.netloc:
        # The value stays out of the message: it may hold a password.
        raise BrokerError(
            "MAVEN_CENTRAL_URL must be the http or https address of a Maven repository, without "
            f"user and password, such as {MAVEN_CENTRAL}"
        )
    return repository.rstrip("/")


def _download(jars: list[Jar], folder: Path, repository: str) -> None:
    _log.info("Downloading %d jars of Apache Kafka from %s to %s", len(jars), repository, folder)

    def fetch(jar: Jar) -> None:
        url = f"{repository}/{jar.path}"
        try:
            content = _content(jar, url, _ATTEMPTS)
        except (OSError, HTTPException) as error:
            raise BrokerError(
                f"Apache Kafka cannot be downloaded: {url} failed ({error}). Connect this machine "
                "to the internet once (HTTPS_PROXY is honoured), set MAVEN_CENTRAL_URL to a "
                f"mirror of Maven Central, or copy the jars of another machine into {folder}"
            ) from error
        _store(content, folder / jar.name)

    pool = ThreadPoolExecutor(_DOWNLOADS_AT_ONCE)
    try:
        for _ in pool.map(fetch, jars):
            pass
    finally:
        # After a failure the other jars are not worth waiting for.
        pool.shutdown(cancel_futures=True)


def _content(jar: Jar, url: str, attempts: int) -> bytes:
    """What stands at the address; any failure may be transient, so it is tried again."""
    try:
        with urlopen(url, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 - http(s) only
            content = bytes(response.read())
        jar.check(content)
    except (OSError, HTTPException):
        if attempts == 1:
            raise
        time.sleep(_PAUSE_SECONDS)
        return _content(jar, url, attempts - 1)
    return content


def _store(content: bytes, file: Path) -> None:
    """Write the file whole or not at all, whoever else writes it at the same time."""
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".part", delete=False) as part:
        part.write(content)
    Path(part.name).replace(file)

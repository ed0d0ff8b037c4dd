"""The jars of the local broker: fetched once, checked, repaired; and what is said when not."""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.kafka.local import jars
from pyspark_upsert_kafka.kafka.local.jars import broker_jars
from tests.http_server import Answer, Asked, http_server

FILES = {f"org/example/{name}/1.0/{name}-1.0.jar": name.encode() * 999 for name in ("one", "two")}


@dataclass
class Repository:
    """A Maven repository on this machine that counts what it is asked, and fails when told to."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=lambda: dict(FILES))
    asked: list[str] = field(default_factory=list)
    failures: int = 0


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """It serves the jars of the fake lock."""
    monkeypatch.setattr(jars, "_PAUSE_SECONDS", 0.0)
    repository = Repository()

    def answer(asked: Asked) -> Answer:
        path = asked.path.removeprefix("/maven2/")
        repository.asked.append(path)
        if repository.failures:
            repository.failures -= 1
            return Answer(503)
        found = repository.files.get(path)
        return Answer(404) if found is None else Answer(200, found)

    with http_server(answer) as url:
        repository.url = f"{url}/maven2/"
        yield repository


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock file of two small jars."""
    lines = [f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in FILES.items()]
    lock = tmp_path / "kafka-0.lock"
    lock.write_text("# A comment.\n" + "".join(lines))
    return lock


def contents(folder: Path) -> dict[str, bytes]:
    """What the folder holds, by file name."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


WANTED = {path.rpartition("/")[2]: content for path, content in FILES.items()}


def test_downloads_every_jar_of_the_lock(repository, lock, tmp_path):
    """The folder holds the jars of the lock file and nothing else, folder names with spaces too."""
    folder = broker_jars(lock, tmp_path / "a folder" / "jars", repository.url)

    assert contents(folder) == WANTED


def test_a_jar_is_downloaded_once(repository, lock, tmp_path):
    """What is there and whole is not asked for again."""
    broker_jars(lock, tmp_path / "jars", repository.url)
    broker_jars(lock, tmp_path / "jars", repository.url)

    assert sorted(repository.asked) == sorted(FILES)


def test_a_damaged_jar_is_replaced(repository, lock, tmp_path):
    """A jar in the cache that is not the one of the lock is downloaded again, and only that one."""
    folder = broker_jars(lock, tmp_path / "jars", repository.url)
    (folder / "one-1.0.jar").write_bytes(b"half")
    repository.asked.clear()

    broker_jars(lock, folder, repository.url)

    assert contents(folder) == WANTED
    assert repository.asked == ["org/example/one/1.0/one-1.0.jar"]


def test_a_jar_with_a_wrong_hash_is_refused(repository, lock, tmp_path):
    """A download that is not the one of the lock never gets into the folder."""
    repository.files["org/example/one/1.0/one-1.0.jar"] = b"<html>Please log in</html>"

    with pytest.raises(BrokerError, match=r"one-1\.0\.jar failed \(26 bytes with SHA-256 "):
        broker_jars(lock, tmp_path / "jars", repository.url)

    assert "one-1.0.jar" not in contents(tmp_path / "jars")
    assert not list((tmp_path / "jars").glob("*.part"))


def test_a_failed_download_is_tried_again(repository, lock, tmp_path):
    """A failure that passes is not worth an error."""
    repository.failures = 2

    assert contents(broker_jars(lock, tmp_path / "jars", repository.url)) == WANTED


def test_without_a_network_the_error_says_what_to_do(repository, lock, tmp_path):
    """The sentence names the address, what happened, and the ways out."""
    nobody = "http://127.0.0.1:1"  # a reserved port, on which nobody listens

    with pytest.raises(BrokerError) as error:
        broker_jars(lock, tmp_path / "jars", nobody)

    text = str(error.value)
    assert f"{nobody}/org/example/" in text
    assert "Connection refused" in text
    assert "MAVEN_CENTRAL_URL" in text
    assert str(tmp_path / "jars") in text


def test_a_place_that_cannot_be_written_is_told(repository, lock, tmp_path):
    """As in a container whose user has no home; the sentence names the folder, what is wrong, and the way out."""
    (tmp_path / "home").touch()

    with pytest.raises(BrokerError, match="XDG_CACHE_HOME") as error:
        broker_jars(lock, tmp_path / "home" / "jars", repository.url)

    assert f"cannot be kept in {tmp_path}/home/jars (Not a directory)" in str(error.value)
    assert repository.asked == []


def test_a_disk_that_is_full_is_told(repository, lock, tmp_path, monkeypatch):
    """It is not the network that has failed."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(jars.tempfile, "NamedTemporaryFile", full)

    with pytest.raises(BrokerError, match=r"cannot be kept in .* \(No space left on device\)"):
        broker_jars(lock, tmp_path / "jars", repository.url)


def test_a_mirror_is_taken_from_the_environment(repository, lock, tmp_path, monkeypatch):
    """MAVEN_CENTRAL_URL names a mirror, with or without a slash at its end."""
    monkeypatch.setenv("MAVEN_CENTRAL_URL", repository.url.rstrip("/"))

    assert contents(broker_jars(lock, tmp_path / "jars")) == WANTED


@pytest.mark.parametrize(
    "url", ["https://me:geheim@example.org/maven2", "file:///geheim", "geheim"]
)
def test_a_mirror_must_be_a_plain_web_address(lock, tmp_path, monkeypatch, url):
    """What is not a web address is refused, and a password in it is not repeated."""
    monkeypatch.setenv("MAVEN_CENTRAL_URL", url)

    with pytest.raises(BrokerError, match="MAVEN_CENTRAL_URL must be") as error:
        broker_jars(lock, tmp_path / "jars")

    assert "geheim" not in str(error.value)


def test_many_may_download_at_the_same_time(repository, lock, tmp_path):
    """Whoever comes first, everybody finds whole jars."""
    with ThreadPoolExecutor(8) as pool:
        calls = [
            pool.submit(broker_jars, lock, tmp_path / "jars", repository.url) for _ in range(8)
        ]
        folders = {call.result() for call in calls}

    assert [contents(folder) for folder in folders] == [WANTED]


def test_the_lock_of_this_package_names_kafka_and_its_log():
    """Every line of the real lock is a SHA-256 and a jar; no two have the same name."""
    locked = jars._read(jars._LOCK)
    names = [jar.name for jar in locked]

    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in locked)
    assert len(set(names)) == len(names)
    assert {"kafka_2.13-4.3.1.jar", "slf4j-simple-1.7.36.jar"} <= set(names)

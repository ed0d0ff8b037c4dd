"""A Postgres of its own in a temporary folder, which keeps what logical decoding needs."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.recorded_debezium.messages import DATABASE

_SECONDS = 60


@dataclass(frozen=True)
class Postgres:
    """A server that runs on this machine."""

    port: int

    def run(self, *statements: str) -> None:
        """Runs statements in one transaction."""
        self.psql(DATABASE, "BEGIN;", *statements, "COMMIT;")

    def psql(self, database: str, *statements: str) -> None:
        """Runs statements in a database, one after another."""
        given = [
            "psql",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-U",
            "postgres",
            "-d",
            database,
        ]
        subprocess.run(
            given, input="\n".join(statements), text=True, check=True, env=_environment()
        )


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server that is stopped in the end, and its data removed.

    Raises:
        RuntimeError: Postgres is not installed, or does not start.
    """
    initdb, program = shutil.which("initdb"), shutil.which("postgres")
    if initdb is None or program is None:
        raise RuntimeError("Postgres is not installed: apt-get install postgresql")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        owner = _owner(Path(folder))
        locale = ["--no-locale", "--encoding=UTF8", "--auth=trust", "--username=postgres"]
        subprocess.run(
            [initdb, "-D", data, *locale], check=True, stdout=subprocess.DEVNULL, user=owner
        )
        port = _free_port()
        settings = [
            "wal_level=logical",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={folder}",
        ]
        options = [part for setting in settings for part in ("-c", setting)]
        with subprocess.Popen(
            [program, "-D", data, "-p", str(port), *options], user=owner, stderr=subprocess.DEVNULL
        ) as process:
            try:
                _wait(process, port)
                server = Postgres(port)
                server.psql("postgres", f"CREATE DATABASE {DATABASE};")
                yield server
            finally:
                process.terminate()


def _owner(folder: Path) -> int | None:
    """Who runs the server: Postgres refuses root, and another user then owns the folder. None = who runs this."""
    if os.geteuid():
        return None
    owner = pwd.getpwnam("postgres").pw_uid
    os.chown(folder, owner, -1)
    return owner


def _environment() -> dict[str, str]:
    return {**os.environ, "PGCLIENTENCODING": "UTF8", "PGTZ": "UTC"}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + _SECONDS
    while subprocess.run(
        ["pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)], check=False
    ).returncode:
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError("Postgres did not start")
        time.sleep(0.1)

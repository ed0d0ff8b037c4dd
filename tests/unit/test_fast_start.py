"""The switch by which tests run without what makes them start faster."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

from tests.fast_start import settings
from tools.class_archives import _flags_to_make, flags


def test_plain_tests_change_nothing():
    """With ``PLAIN_TESTS`` Spark, brokers and Python workers start as a user's do."""
    assert settings({"PLAIN_TESTS": "1", "PYTHONPATH": "/mine"}) == {}


def test_what_is_set_already_stays():
    """A home of Spark and flags of JVMs that somebody has chosen are kept."""
    chosen = {"SPARK_HOME": "/spark", "SPARK_SUBMIT_OPTS": "-Xa", "LOCAL_KAFKA_OPTS": "-Xb"}
    found = settings(chosen)
    assert {name: found[name] for name in chosen} == chosen


def test_an_archive_in_a_folder_with_a_space(tmp_path: Path) -> None:
    """It is one word of what a JVM is told, as the folder of the checkout may be called anything."""
    archive = tmp_path / "a folder" / "broker.jsa"
    archive.parent.mkdir()
    archive.touch()

    for told in (flags(archive), _flags_to_make(archive)):
        assert sum(str(archive) in word for word in shlex.split(told)) == 1


def test_workers_import_first_what_they_need():
    """Python finds the tests' ``sitecustomize`` before anything of the user's."""
    first, *others = settings({"PYTHONPATH": "/mine"})["PYTHONPATH"].split(":")
    assert first.endswith("spark_workers")
    assert others == ["/mine"]


STREAM = """
from pyspark.util import local_connect_and_auth
file, connection = local_connect_and_auth(0, "")
connection.settimeout(None)
file.write(b"connected")
file.close()
"""


def test_the_process_of_a_stream_connects_before_it_imports_anything(tmp_path: Path) -> None:
    """Spark waits ten seconds for it; here it may not import PySpark before it has connected."""
    package = tmp_path / "pyspark"
    package.mkdir()
    (package / "__init__.py").write_text("input()")
    (package / "util.py").write_text("")
    (package / "stream.py").write_text(STREAM)
    workers = settings({})["PYTHONPATH"].split(os.pathsep)[0]
    with socket.create_server(("127.0.0.1", 0)) as server:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([workers, str(tmp_path)]),
            "PYTHON_WORKER_FACTORY_PORT": str(server.getsockname()[1]),
            "PYTHON_WORKER_FACTORY_SECRET": "secret",
        }
        command = [sys.executable, "-m", "pyspark.stream"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as process:
            connection, _ = server.accept()
            with connection, connection.makefile("rwb") as file:
                said = file.read(4 + len("secret"))
                file.write(b"\0\0\0\2ok")
                file.flush()
                process.communicate(b"\n")
                answered = file.read()

    assert said == b"\0\0\0\6secret"
    assert answered == b"connected"
    assert process.returncode == 0

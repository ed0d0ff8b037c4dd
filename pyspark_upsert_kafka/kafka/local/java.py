"""The Java that Spark uses, when it is new enough for the broker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from pyspark_upsert_kafka.core.errors import BrokerError

_OLDEST_JAVA = 17

# They change what a JVM runs, or add lines to what it prints.
_JVM_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH")


def find_java() -> str:
    """The program that runs Java: of JAVA_HOME, or else the first on PATH.

    Raises:
        BrokerError: There is none, it does not run, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    need = f"LocalKafka needs Java {_OLDEST_JAVA} or newer, as Spark does"
    advice = (
        "Install one, for example from https://adoptium.net, and let JAVA_HOME name its folder."
    )
    if java is None:
        raise BrokerError(
            f"{need}, but JAVA_HOME is not set and there is no java on PATH. {advice}"
        )
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, env=environment(), check=False
        )
    except OSError as error:
        raise BrokerError(
            f"{need}, but {java} cannot be run ({error.strerror}). {advice}"
        ) from error
    said = (run.stderr + run.stdout).strip()
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None:
        raise BrokerError(f"{need}, but {java} -version says {said[:200]!r}. {advice}")
    if int(version[1]) < _OLDEST_JAVA:
        raise BrokerError(f"{need}, but {java} is Java {version[1]}. {advice}")
    return java


def environment() -> dict[str, str]:
    """The environment variables for a Java, without those that change what it does."""
    return {name: value for name, value in os.environ.items() if name not in _JVM_VARIABLES}

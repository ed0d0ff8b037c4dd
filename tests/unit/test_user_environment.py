"""Tests do the same whatever a user has in his environment for other work, and do nothing to what it names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import proxy_bypass_environment

import pytest

from tests.git import git
from tests.user_environment import set_aside

ROOT = Path(__file__).parents[2]


def test_what_a_user_has_for_other_work_is_not_there() -> None:
    """His clouds, and the repository whose hook runs the tests; all else stays."""
    environment = {
        "AWS_PROFILE": "mine",
        "AWS_ENDPOINT_URL": "http://localhost:4566",
        "AZURE_CLIENT_ID": "mine",
        "CLOUDSDK_CONFIG": "/mine",
        "GIT_DIR": "/mine/.git",
        "GIT_INDEX_FILE": "/mine/.git/index.lock",
        "GOOGLE_APPLICATION_CREDENTIALS": "/mine.json",
        "HOME": "/home/me",
        "https_proxy": "http://proxy:3128",
    }
    set_aside(environment)

    assert {name for name, value in environment.items() if "mine" in value} == set()
    assert "AWS_ENDPOINT_URL" not in environment
    assert environment["HOME"] == "/home/me"
    assert environment["https_proxy"] == "http://proxy:3128"


@pytest.mark.parametrize("name", ["no_proxy", "NO_PROXY", "neither"])
def test_servers_of_this_machine_are_asked_directly(name: str) -> None:
    """Beside those that the user asks directly."""
    environment = {name: "mirror.example", "http_proxy": "http://proxy:3128"}
    set_aside(environment)
    proxies = {"http": "http://proxy:3128", "no": environment["no_proxy"]}

    for host in ("127.0.0.1:9092", "localhost:50051"):
        assert proxy_bypass_environment(host, proxies)
    assert proxy_bypass_environment("mirror.example", proxies) == (name != "neither")
    assert not proxy_bypass_environment("elsewhere.example", proxies)
    assert "NO_PROXY" not in environment


def test_commits_of_tests_are_no_commits_of_the_user(tmp_path: Path) -> None:
    """In a hook git names his repository to all that runs in it, and his settings may want signatures."""
    (tmp_path / ".gitconfig").write_text("[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = false\n")
    his, own = tmp_path / "his", tmp_path / "own"
    in_a_hook = {**os.environ, "HOME": str(tmp_path), "GIT_DIR": str(his / ".git")}
    set_aside(in_a_hook)
    for folder, environment in {his: None, own: in_a_hook}.items():
        folder.mkdir()
        for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message=x"]):
            git(folder, *command, environment=environment)

    assert [git(each, "rev-list", "--count", "--all") for each in (his, own)] == ["1", "1"]


def test_make_passes_no_other_spark_on() -> None:
    """Each environment of the Makefile has its own PySpark, and its own settings of Spark."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    names = {
        "HADOOP_CONF_DIR", "PYSPARK_DRIVER_PYTHON", "PYSPARK_DRIVER_PYTHON_OPTS", "PYSPARK_SUBMIT_ARGS",
        "PYTHONOPTIMIZE", "PYTHONPATH", "SPARK_CONF_DIR", "SPARK_HOME", "SPARK_REMOTE",
    }  # fmt: skip
    given = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    passed = subprocess.run(
        ["make", "--silent", "--file=Makefile", "--file=-", "shown"],
        input="shown:\n\t@env\n",
        cwd=ROOT,
        env={**given, **dict.fromkeys(names, "his"), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()

    assert [each for each in passed if each.endswith("=his")] == []
    assert "SPARK_LOCAL_IP=127.0.0.1" in passed


def test_a_checkout_where_spark_finds_no_data_source_is_refused(tmp_path: Path) -> None:
    """Before anything is installed, in a sentence."""
    folder = tmp_path / "my projects"
    folder.mkdir()
    command = ["sh", str(ROOT / "tools" / "check-needs"), sys.executable]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    assert ran.returncode == 1
    assert f"move this checkout, which is in '{folder}'" in ran.stderr

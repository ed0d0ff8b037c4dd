"""What whoever runs the tests has in his environment for other work: no test depends on it, or touches what it names."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

_OF_OTHER_WORK = ("AWS_", "AZURE_", "CLOUDSDK_", "GIT_", "GOOGLE_")
"""What the names of variables begin with that speak of a user's clouds, and of the repository whose hook runs the tests."""

_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    # Also a clone that belongs to another user, as in a container.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}
"""Git without the user's own settings: commits of tests are not signed, and run no hooks."""

_THIS_MACHINE = "127.0.0.1,localhost"


def set_aside(environment: MutableMapping[str, str]) -> None:
    """Changes the environment of tests, and of what they start.

    Servers of this machine are asked directly, whatever proxy leads to those from which tests download.
    """
    others = environment.get("no_proxy") or environment.get("NO_PROXY")
    for name in [*environment]:
        if name.startswith(_OF_OTHER_WORK) or name == "NO_PROXY":
            del environment[name]
    environment.update(_GIT)
    environment["no_proxy"] = f"{others},{_THIS_MACHINE}" if others else _THIS_MACHINE

"""``python -m pyspark_upsert_kafka``."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

from pyspark_upsert_kafka.cli.terminal import interrupts

_OF_CLIENTS = (["show"], ["replay"])
"""They call a Kafka client in the main thread; others have a JVM or a broker to end."""


class _WithoutPandas(MetaPathFinder):
    """Has pandas not found.

    Where it is installed, pyarrow imports it when it makes its first array, to ask whether a list is one of its
    series. That takes as long as half of all else that ``show`` does before its first row.
    """

    def find_spec(self, fullname: str, *_: object) -> None:
        """Refuses pandas, and knows of nothing else."""
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


if __name__ == "__main__":
    if sys.argv[1:2] == ["show"]:
        sys.meta_path.insert(0, _WithoutPandas())
    interrupts.begin(of_client=sys.argv[1:2] in _OF_CLIENTS)
    try:
        from pyspark_upsert_kafka.cli import main

        code = main()
    except KeyboardInterrupt:  # before a command has begun
        interrupts.settled()
        code = 130
    interrupts.settled()
    sys.exit(code)

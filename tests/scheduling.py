"""Which tests stay in one process when pytest-xdist runs them in several."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling


class ByFolder(LoadScopeScheduling):
    """A folder with a broker or a Spark session in one process; unit tests file by file."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if path.startswith("tests/unit/") else path.rpartition("/")[0]

"""``python -m pyspark_upsert_kafka``."""

from __future__ import annotations

import sys

from pyspark_upsert_kafka.cli import main

if __name__ == "__main__":
    sys.exit(main())

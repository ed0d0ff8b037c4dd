"""What a stream cannot do right: the sentence about each part of a query that is rejected, with what to do instead."""

from __future__ import annotations

_BATCH = "Or run it in batch mode, over the table as of now: SET 'execution.runtime-mode' = 'batch'"

_FILTERED = (
    "filtering a table that changes is not done in a stream: a row that no longer fits would have to be deleted. Write "
    "all rows, and filter where the table is read."
)

OF_CHANGES = {
    "where": f"{_FILTERED} {_BATCH}.",
    "group": (
        "aggregating a table that changes is not done in a stream: an update would be counted twice. Use normalize_changelog in "
        f"Python (docs/aggregating.md). {_BATCH}."
    ),
    "joins": (
        "joining is not done in a stream: Spark joins streams of rows that are only added, with watermarks, in Python; a table "
        f"that changes is joined in foreachBatch (docs/joining.md). {_BATCH}."
    ),
    "laterals": (
        "UNNEST over a table that changes is not done in a stream: rows that an update leaves out would have to be deleted. "
        f"{_BATCH}."
    ),
    "having": (
        "HAVING is not done in a stream: a group that no longer fits would have to be deleted. Write all groups, and filter where "
        f"the table is read. {_BATCH}."
    ),
    "distinct": (
        f"SELECT DISTINCT is not done in a stream: write GROUP BY with the same columns. {_BATCH}."
    ),
    "order": f"ORDER BY is not done in a stream, which has no end. {_BATCH}.",
    "limit": f"LIMIT is not done in a stream: which rows it takes would be chance. {_BATCH}.",
    "offset": f"OFFSET is not done in a stream: which rows it takes would be chance. {_BATCH}.",
}
"""By the part of a query that cannot be done."""

FILTERED_CDC = f"{_FILTERED} Or leave the PRIMARY KEY out where the changes are read: then rows before and after each change are filtered. {_BATCH}."
FILTERED_CALL = (
    f"{_FILTERED} Or filter the input of FROM_CHANGELOG by columns that no update changes, as those of the key: WHERE can be in the "
    "query that is the input. Or map UPDATE_BEFORE too, if its rows are there: then rows before and after each change are filtered."
)
GROUPS_OF_IMAGES = (
    "aggregating a table that changes is not done in a stream: an update would be counted twice. Declare a PRIMARY KEY where the changes "
    "are read, and use normalize_changelog in Python (docs/aggregating.md), or batch mode, over the table as of now: SET "
    "'execution.runtime-mode' = 'batch'."
)
NESTED = f"a query within an expression is not done in a stream: it would be joined (docs/joining.md). {_BATCH}."
OVER = f"OVER is not done in a stream: Spark has windows of time only. Use TUMBLE or HOP. {_BATCH}."
RANKED = (
    "ranking is not done in a stream: a row that falls behind would have to be deleted. Write all rows, and rank them where the "
    f"table is read. {_BATCH}."
)
SETS = f"GROUPING SETS, CUBE and ROLLUP are not done in a stream: write one INSERT INTO for each grouping. {_BATCH}."
UNION = f"UNION ALL of append tables is the only set operation that is done in a stream. {_BATCH}."
NO_STREAM = (
    "rows that are no stream are not united with one: write them with an INSERT INTO of their own."
)
NO_ORDER = (
    "FROM_CHANGELOG with UPDATE_BEFORE takes the rows of a table or of a projection of it: the order of others is not known. Write "
    "one INSERT INTO for each table."
)
NO_WATERMARK = (
    "the column of a window must have a WATERMARK in its CREATE TABLE: without it, no window would ever be done. "
    "Declare WATERMARK FOR column AS column - INTERVAL '5' SECOND"
)

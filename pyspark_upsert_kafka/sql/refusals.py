"""What is said of statements that are refused wherever they stand."""

from __future__ import annotations

HINT = (
    "hints such as /*+ OPTIONS(...) */ are not supported: write the options into the table's WITH, where they hold for "
    "each statement."
)
QUOTES = "double quotes are not Flink's: write `name` in backticks for a name, and 'text' in single quotes for a text."
SYSTEM_TIME = "FOR SYSTEM_TIME AS OF is not supported: Spark keeps no versions of a table. Join in Python (docs/joining.md), or the table as of now in batch mode."
MATCH = "MATCH_RECOGNIZE is not supported: Spark has no counterpart."
WINDOWS = {
    "CUMULATE": "CUMULATE is not supported: Spark has no windows that grow. Use TUMBLE or HOP.",
    "SESSION": "SESSION is not supported: Spark has no session windows in update mode. Use TUMBLE or HOP.",
}
"""Windows of Flink that Spark has not, or not in streams."""

UNKNOWN = (
    "expected CREATE TABLE, CREATE VIEW, INSERT INTO, SELECT, SET, RESET, DROP, BEGIN STATEMENT SET or EXECUTE "
    "STATEMENT SET; nothing else is run here."
)

_LEAVE_OUT = "it is not needed here: leave it out."
_BY_PYTHON = "it is not run here: what it would tell can be asked in Python, with printSchema() and explain()."
_CHANGES = "a table changes by INSERT INTO only: a delete is a row with 'delete' in a column METADATA FROM 'change-type' (docs/sql.md)."

NOT_READ = {
    "USE": "there are no catalogs and databases here: name tables alone, and leave it out.",
    "ADD": "it is not needed here, since nothing is loaded into Flink: leave it out.",
    "REMOVE": _LEAVE_OUT,
    "LOAD": _LEAVE_OUT,
    "UNLOAD": _LEAVE_OUT,
    "ANALYZE": _LEAVE_OUT,
    "SHOW": _BY_PYTHON,
    "DESCRIBE": _BY_PYTHON,
    "DESC": _BY_PYTHON,
    "EXPLAIN": _BY_PYTHON,
    "ALTER": "a table of a script has one CREATE TABLE: change that, or DROP the table and create it anew.",
    "DELETE": _CHANGES,
    "UPDATE": _CHANGES,
    "TRUNCATE": "a topic cannot be emptied by SQL: delete its records with Kafka's own tools.",
    "MERGE": _CHANGES,
    "COMPILE": "Flink's plans are not known here: run the statement itself.",
    "STOP": "stop the query that run_sql returned, or the command with Ctrl-C.",
    "CALL": "procedures of catalogs are not known here.",
}
"""Statements of Flink that are not run, by their first word, and what to do instead."""

"""The queries of Flink's documentation, page by page: each runs as in Flink, or is refused with a sentence."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sql.script_compiler import Mode, compile_script

PLACE = "'properties.bootstrap.servers' = 'x:1'"
TABLES = f"""
CREATE TABLE Orders (order_id BIGINT, product STRING, amount DECIMAL(10, 2), customer_id BIGINT, order_time TIMESTAMP(3),
  products ARRAY<STRING>, WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND)
WITH ('connector' = 'kafka', 'topic' = 'orders', {PLACE}, 'format' = 'json');
CREATE TABLE Shipments (id BIGINT, order_id BIGINT, ship_time TIMESTAMP(3), WATERMARK FOR ship_time AS ship_time)
WITH ('connector' = 'kafka', 'topic' = 'shipments', {PLACE}, 'format' = 'json');
CREATE TABLE Customers (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'customers', {PLACE}, 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE cdc_stream (id INT, op STRING, name STRING)
WITH ('connector' = 'kafka', 'topic' = 'cdc', {PLACE}, 'format' = 'json');
CREATE TABLE cdc_operation (id INT, operation STRING, name STRING)
WITH ('connector' = 'kafka', 'topic' = 'cdc', {PLACE}, 'format' = 'json');
CREATE TABLE retracting (name STRING, id BIGINT, cnt BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'retracting', {PLACE}, 'format' = 'debezium-json');
CREATE VIEW my_aggregation AS SELECT customer_id AS id, COUNT(*) AS cnt FROM Orders GROUP BY customer_id;
"""
TUMBLE = "TUMBLE(TABLE Orders, DESCRIPTOR(order_time), INTERVAL '10' MINUTES)"
SUMS = "SELECT window_start, window_end, product, SUM(amount) AS total FROM"
BY = "GROUP BY window_start, window_end, product"
NUMBERED = "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS n FROM {}) WHERE n <= {}"
OVER, RANK, JOIN = "OVER is not done", "ranking is not done in a stream", "joining is not done"
SETS = "GROUPING SETS, CUBE and ROLLUP are"

IN_BOTH = [
    # Select and where, WITH
    "SELECT order_id, amount + 1 FROM Orders WHERE amount > 10",
    "SELECT order_id, price FROM (VALUES (1, 2.0), (2, 3.1)) AS t (order_id, price)",
    "WITH big AS (SELECT * FROM Orders WHERE amount > 10) SELECT product, COUNT(*) FROM big GROUP BY product",
    "SELECT * FROM Customers",
    # Group aggregation
    "SELECT COUNT(*) FROM Orders",
    "SELECT product, SUM(amount) FROM Orders GROUP BY product",
    "SELECT product, COUNT(DISTINCT customer_id) FILTER (WHERE amount > 1) FROM Orders GROUP BY product",
    # Windows
    f"{SUMS} TABLE({TUMBLE}) {BY}",
    f"{SUMS} {TUMBLE} {BY}",
    f"{SUMS} HOP(TABLE Orders, DESCRIPTOR(order_time), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES) {BY}",
    (f"{SUMS} TABLE(HOP(DATA => TABLE Orders, TIMECOL => DESCRIPTOR(order_time), SLIDE => INTERVAL '5' MINUTES, "
     f"SIZE => INTERVAL '10' MINUTES)) {BY}"),
    "SELECT TUMBLE_START(order_time, INTERVAL '1' DAY), COUNT(*) FROM Orders GROUP BY TUMBLE(order_time, INTERVAL '1' DAY)",
    # Array expansion, set operations
    "SELECT order_id, p FROM Orders CROSS JOIN UNNEST(products) AS t (p)",
    "SELECT order_id FROM Orders UNION ALL SELECT order_id FROM Shipments",
]  # fmt: skip
IN_BATCHES = {
    "SELECT DISTINCT product FROM Orders": "SELECT DISTINCT is not done",
    "SELECT product, SUM(amount) FROM Orders GROUP BY product HAVING SUM(amount) > 50": "HAVING is not done",
    "SELECT product, customer_id, COUNT(*) FROM Orders GROUP BY GROUPING SETS ((product, customer_id), (product), ())": SETS,
    "SELECT product, COUNT(*) FROM Orders GROUP BY ROLLUP (product)": SETS,
    ("SELECT SUM(amount) OVER (PARTITION BY product ORDER BY order_time RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT "
     "ROW) FROM Orders"): OVER,
    "SELECT * FROM Orders AS o INNER JOIN Customers AS c ON o.customer_id = c.id": JOIN,
    "SELECT * FROM Orders AS o FULL OUTER JOIN Customers AS c ON o.customer_id = c.id": JOIN,
    ("SELECT * FROM Orders AS o, Shipments AS s WHERE o.order_id = s.order_id AND o.order_time BETWEEN "
     "s.ship_time - INTERVAL '4' HOUR AND s.ship_time"): JOIN,
    "SELECT order_id FROM Orders INTERSECT SELECT order_id FROM Shipments": "UNION ALL of append tables is the only",
    "SELECT order_id FROM Orders EXCEPT SELECT order_id FROM Shipments": "UNION ALL of append tables is the only",
    "SELECT * FROM Orders WHERE product IN (SELECT name FROM Customers)": "a query within an expression",
    "SELECT * FROM Orders WHERE EXISTS (SELECT name FROM Customers)": "a query within an expression",
    "SELECT * FROM Orders ORDER BY order_time, order_id": "ORDER BY is not done",
    "SELECT * FROM Orders LIMIT 3": "LIMIT is not done",
    # Top-N, deduplication, the same in windows
    NUMBERED.format("product", "amount DESC", "Orders", 5): RANK,
    NUMBERED.format("order_id", "order_time", "Orders", 1): RANK,
    NUMBERED.format("window_start, window_end", "total DESC", f"({SUMS} TABLE({TUMBLE}) {BY})", 3): RANK,
}  # fmt: skip
NEVER = {
    "SELECT LISTAGG(product) FROM Orders": "function LISTAGG: the order of its parts differs from run to run",
    f"{SUMS} TABLE(CUMULATE(TABLE Orders, DESCRIPTOR(order_time), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES)) {BY}":
        "CUMULATE is not supported",
    f"{SUMS} SESSION(TABLE Orders PARTITION BY product, DESCRIPTOR(order_time), INTERVAL '5' MINUTES) {BY}":
        "SESSION is not supported",
    "SELECT * FROM Orders AS o LEFT JOIN Customers FOR SYSTEM_TIME AS OF o.order_time AS c ON o.customer_id = c.id":
        "FOR SYSTEM_TIME AS OF is not supported",
    "SELECT * FROM Orders LEFT JOIN LATERAL TABLE(split(product)) AS t (p) ON TRUE": "LATERAL is not supported",
    "SELECT * FROM MY_FUNCTION(TABLE Orders)": "the table function MY_FUNCTION is not supported",
    ("SELECT * FROM Orders MATCH_RECOGNIZE (ORDER BY order_time MEASURES A.amount AS a ONE ROW PER MATCH PATTERN (A B) "
     "DEFINE A AS A.amount > 1)"): "MATCH_RECOGNIZE is not supported",
}  # fmt: skip


# Changelog conversion; the examples' table that retracts is one of a CDC format.
IN_STREAMS = [
    "SELECT * FROM FROM_CHANGELOG(input => TABLE cdc_stream)",
    "SELECT * FROM FROM_CHANGELOG(input => TABLE cdc_operation, op => DESCRIPTOR(operation))",
    "SELECT * FROM FROM_CHANGELOG(input => TABLE cdc_stream, error_handling => 'SKIP')",
    ("SELECT * FROM FROM_CHANGELOG(input => TABLE cdc_stream, op => DESCRIPTOR(op), op_mapping => MAP['c, r', 'INSERT', 'ub', "
     "'UPDATE_BEFORE', 'ua', 'UPDATE_AFTER', 'd', 'DELETE'])"),
    "SELECT * FROM TO_CHANGELOG(input => TABLE retracting)",
    "SELECT * FROM TO_CHANGELOG(input => TABLE retracting, op => DESCRIPTOR(operation))",
    "SELECT * FROM TO_CHANGELOG(input => TABLE retracting, op => DESCRIPTOR(op_code), op_mapping => MAP['INSERT', 'I', 'UPDATE_AFTER', 'U'])",
    ("SELECT * FROM TO_CHANGELOG(input => TABLE retracting, op => DESCRIPTOR(deleted), op_mapping => MAP['INSERT, UPDATE_AFTER', "
     "'false', 'DELETE', 'true'])"),
    "SELECT * FROM TO_CHANGELOG(input => TABLE retracting PARTITION BY id)",
    "SELECT * FROM TO_CHANGELOG(input => TABLE Orders)",
]  # fmt: skip
IN_NONE = {
    "SELECT * FROM TO_CHANGELOG(input => TABLE my_aggregation)": "TO_CHANGELOG of groups is not done",
    "SELECT * FROM TO_CHANGELOG(input => TABLE Customers)": "the input of TO_CHANGELOG is an upsert table",
}


def refused(query: str, mode: Mode) -> str:
    """What is said of a query that is refused; nothing when it runs."""
    try:
        compile_script(TABLES + query, mode=mode)
    except OptionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("query", IN_BOTH)
def test_what_runs_in_both_modes(query: str) -> None:
    """It is run as a stream, and in batch mode."""
    assert refused(query, "streaming") == refused(query, "batch") == ""


@pytest.mark.parametrize(("query", "sentence"), IN_BATCHES.items())
def test_what_runs_in_batch_mode(query: str, sentence: str) -> None:
    """A stream is refused with what to do instead."""
    assert f": {sentence}" in refused(query, "streaming")
    assert refused(query, "batch") == ""


@pytest.mark.parametrize("query", IN_STREAMS)
def test_what_runs_in_streams(query: str) -> None:
    """A batch has no changes."""
    assert refused(query, "streaming") == ""
    assert "_CHANGELOG is for streams, as in Flink: a batch has no changes." in refused(
        query, "batch"
    )


@pytest.mark.parametrize(("query", "sentence"), IN_NONE.items())
def test_changes_that_are_not_known(query: str, sentence: str) -> None:
    """Rows before changes are not there."""
    assert f": {sentence}" in refused(query, "streaming")


@pytest.mark.parametrize(("query", "sentence"), NEVER.items())
def test_what_does_not_run(query: str, sentence: str) -> None:
    """Either mode is refused."""
    assert f": {sentence}" in refused(query, "streaming")
    assert f": {sentence}" in refused(query, "batch")

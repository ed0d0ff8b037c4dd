"""Tables for scripts of tests: an append table, and upsert tables to read and to write."""

from __future__ import annotations

CDC_TABLES = """
CREATE TABLE people (id BIGINT, name STRING, age INT)
WITH ('connector' = 'kafka', 'topic' = 'people', 'properties.bootstrap.servers' = 'x:1', 'format' = 'debezium-json');
CREATE TABLE keyed (id BIGINT, name STRING, age INT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = 'people', 'properties.bootstrap.servers' = 'x:1', 'format' = 'debezium-json');
CREATE TABLE events (name STRING, op STRING, id BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'events', 'properties.bootstrap.servers' = 'x:1', 'format' = 'json');
CREATE TABLE log_ (id BIGINT, code STRING, name STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'log', 'properties.bootstrap.servers' = 'x:1',
  'key.format' = 'json', 'value.format' = 'json');
""".replace("\n", " ")
"""Changes of a database's table, with and without a key; messages with operation codes; a table to write codes to."""

TABLES = """
CREATE TABLE views (
  user_id BIGINT, page INT, at TIMESTAMP(3), region STRING, price DECIMAL(10, 2), ratio DOUBLE, part FLOAT,
  inner_row ROW<x INT, y STRING>, items ARRAY<INT>, flag BOOLEAN, day_ DATE, moment TIMESTAMP_LTZ(3), small TINYINT,
  WATERMARK FOR at AS at - INTERVAL '2' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'views', 'properties.bootstrap.servers' = 'x:1', 'format' = 'json');
CREATE TABLE users (id BIGINT, name STRING, age INT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'x:1',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE counts (region STRING, n BIGINT, PRIMARY KEY (region) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'counts', 'properties.bootstrap.servers' = 'x:1',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE windows (begin_ TIMESTAMP(3), region STRING, n BIGINT, changed TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  seen BIGINT METADATA FROM 'offset' VIRTUAL, PRIMARY KEY (begin_, region) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'windows', 'properties.bootstrap.servers' = 'x:1',
  'key.format' = 'json', 'value.format' = 'json');
""".replace("\n", " ")
"""In one line, so that what a test writes behind it begins in the first line too."""

WIDTH = len(TABLES)
"""The column before the first of what a test writes."""

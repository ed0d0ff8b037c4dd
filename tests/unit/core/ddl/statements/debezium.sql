CREATE TABLE products (
  origin_ts TIMESTAMP_LTZ(3) METADATA FROM 'value.ingestion-timestamp' VIRTUAL,
  id BIGINT,
  name STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'products',
  'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'debezium-json'
)

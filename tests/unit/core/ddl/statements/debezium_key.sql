CREATE TABLE products (
  id BIGINT,
  name STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'products',
  'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'debezium-json',
  'debezium-json.schema-include' = 'true'
)

create table orders (
  k_shop INT,
  k_id BIGINT,
  id STRING,
  items ARRAY<ROW<name STRING 'of the article', price DECIMAL(10, 2) NOT NULL, tags STRING ARRAY>>
) with (
  'connector' = 'kafka',
  'topic-pattern' = 'orders-.*',
  'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'json',
  'key.json.ignore-parse-errors' = 'true',
  'key.fields' = 'k_shop;k_id',
  'key.fields-prefix' = 'k_',
  'value.format' = 'json',
  'value.json.fail-on-missing-field' = 'false',
  'value.fields-include' = 'EXCEPT_KEY'
)

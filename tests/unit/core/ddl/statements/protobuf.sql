CREATE TABLE readings (
  uid BIGINT,
  name STRING,
  category_type INT,
  content BINARY(16),
  price DOUBLE PRECISION,
  value_map MAP<BIGINT, ROW<v1 BIGINT, v2 INT>>,
  value_arr ARRAY<ROW(v1 BIGINT, v2 INT)>,
  taken INTERVAL DAY TO SECOND(3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'readings',
  'properties.bootstrap.servers' = 'kafka:9092',
  'format' = 'protobuf',
  'protobuf.descriptor-file' = '/etc/readings.desc',
  'protobuf.message-name' = 'shop.Reading',
  'protobuf.ignore-parse-errors' = 'true'
)

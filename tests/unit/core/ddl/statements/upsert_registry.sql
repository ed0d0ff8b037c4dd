CREATE TEMPORARY TABLE users (
  id STRING NOT NULL,
  region STRING NOT NULL,
  email STRING,
  CONSTRAINT users_key PRIMARY KEY (region, id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'users',
  'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'avro-confluent',
  'key.avro-confluent.url' = 'http://registry:8081',
  'key.avro-confluent.subject' = 'users-key2',
  'value.format' = 'avro-confluent',
  'value.avro-confluent.url' = 'http://registry:8081',
  'value.fields-include' = 'EXCEPT_KEY',
  'sink.buffer-flush.max-rows' = '1000',
  'sink.buffer-flush.interval' = '1s'
);

-- of the page on upsert-kafka, its keys and formats
CREATE TABLE KafkaTable (
  `ts` TIMESTAMP(3) METADATA FROM 'timestamp',
  `user_id` BIGINT,
  `item_id` BIGINT,
  `behavior` STRING,
  PRIMARY KEY (`user_id`) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'user_behavior',
  'properties.bootstrap.servers' = 'localhost:9092',

  'key.format' = 'json',
  'key.json.ignore-parse-errors' = 'true',

  'value.format' = 'json',
  'value.json.fail-on-missing-field' = 'false',
  'value.fields-include' = 'EXCEPT_KEY'
);

CREATE TABLE last_behavior (
  user_id BIGINT,
  behavior STRING,
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'last_behavior',
  'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'csv',
  'value.format' = 'csv'
);

INSERT INTO last_behavior SELECT user_id, UPPER(behavior) FROM KafkaTable;

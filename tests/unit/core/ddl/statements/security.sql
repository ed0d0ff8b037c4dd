CREATE TABLE clicks (
  page STRING PRIMARY KEY NOT ENFORCED,
  clicks BIGINT,
  seen TIMESTAMP(3) WITH LOCAL TIME ZONE,
  WATERMARK FOR `seen` AS `seen`
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'clicks',
  'properties.bootstrap.servers' = 'kafka:9092',
  'key.format' = 'raw',
  'value.format' = 'json',
  'properties.security.protocol' = 'SASL_SSL',
  /* the certificate of the brokers */
  'properties.ssl.truststore.location' = '/etc/kafka/truststore.p12',
  'properties.ssl.truststore.password' = '${file:/etc/kafka/secrets:truststore}',
  'properties.sasl.mechanism' = 'SCRAM-SHA-256',
  'properties.sasl.jaas.config' = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="ana" password="it''s -- no /* comment";'
);

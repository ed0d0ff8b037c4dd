CREATE TABLE nginx_log (
  log STRING
) WITH (
  'connector' = 'kafka',
  'topic' = 'nginx_log',
  'properties.bootstrap.servers' = 'localhost:9092',
  'properties.group.id' = 'testGroup',
  'format' = 'raw'
);

SELECT t.hostname, t.datetime, t.url, t.browser
FROM(
  SELECT my_split(log) as t FROM nginx_log
);

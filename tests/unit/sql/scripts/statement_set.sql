CREATE TABLE pageviews (
  user_id BIGINT,
  page_id BIGINT,
  viewtime TIMESTAMP
) WITH (
  'connector' = 'kafka',
  'topic' = 'pageviews',
  'properties.bootstrap.servers' = '...',
  'format' = 'avro'
);

CREATE TABLE pageview_pv_sink (
  page_id BIGINT,
  cnt BIGINT,
  PRIMARY KEY (page_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'pageview_pv',
  'properties.bootstrap.servers' = '...',
  'key.format' = 'avro',
  'value.format' = 'avro'
);

CREATE TABLE pageview_uv_sink (
  page_id BIGINT,
  cnt BIGINT,
  PRIMARY KEY (page_id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'pageview_uv',
  'properties.bootstrap.servers' = '...',
  'key.format' = 'avro',
  'value.format' = 'avro'
);

EXECUTE STATEMENT SET
BEGIN

INSERT INTO pageview_pv_sink
SELECT page_id, count(1) FROM pageviews GROUP BY page_id;

INSERT INTO pageview_uv_sink
SELECT page_id, count(distinct user_id) FROM pageviews GROUP BY page_id;

END;

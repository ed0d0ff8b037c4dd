CREATE TABLE IF NOT EXISTS shop.web.`Behaviour` (
  `seen_at` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',  -- can be written
  `partition` BIGINT METADATA VIRTUAL,                   // a column's name is the key
  `offset` BIGINT NOT NULL METADATA VIRTUAL COMMENT 'where it stands',
  notes MAP<STRING, BYTES> METADATA FROM 'headers',
  "user id" BIGINT COMMENT 'it''s a number',
  behavior VARCHAR(20)
) COMMENT 'what users do' WITH (
  'connector' = 'kafka',
  'topic' = 'behaviour;clicks',
  'properties.bootstrap.servers' = 'kafka:9092',
  'properties.group.id' = 'reports',
  'scan.startup.mode' = 'latest-offset',
  /* no comment /* begins in a comment: fields stand in
     the order of the columns */
  'format' = 'csv',
  'csv.field-delimiter' = ';',
  'csv.escape-character' = '\'
);

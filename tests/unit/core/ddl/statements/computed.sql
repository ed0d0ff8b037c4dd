CREATE TABLE orders (
  id BIGINT,
  price DOUBLE,
  quantity DOUBLE,
  cost AS price * quantity,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka')

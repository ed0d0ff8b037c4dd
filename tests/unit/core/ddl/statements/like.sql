CREATE TABLE orders_with_watermark (
  id BIGINT,
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH (
  'scan.startup.mode' = 'latest-offset'
) LIKE orders (EXCLUDING ALL INCLUDING GENERATED);

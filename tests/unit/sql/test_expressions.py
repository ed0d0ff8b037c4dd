"""What values a query may compute, as Spark computes them; what differs is refused."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sql.script_compiler import compile_script
from tests.unit.sql.tables import TABLES, WIDTH


def spark_of(expression: str) -> str:
    """A value over the table `views` as Spark's SQL has it."""
    (job,) = compile_script(f"{TABLES}SELECT {expression} AS x FROM views AS v", mode="batch").jobs
    text = job.query.sql.removeprefix("SELECT ").removesuffix(" AS `x` FROM {table_0} AS `v`")
    return text.replace("`v`.", "").replace("`", "")


@pytest.mark.parametrize(
    ("flink", "spark"),
    [
        ("page + 1", "page + 1"),
        ("-page", "-page"),
        ("region || 'x'", "region || 'x'"),
        ("'it''s {a} \\ b'", "'it\\'s {{a}} \\\\ b'"),
        ("CASE WHEN flag THEN 1 ELSE 2 END", "CASE WHEN flag THEN 1 ELSE 2 END"),
        ("page BETWEEN 1 AND 2 AND NOT flag", "page BETWEEN 1 AND 2 AND NOT flag"),
        ("region IN ('a', 'b') OR region LIKE 'a%'", "region IN ('a', 'b') OR region LIKE 'a%'"),
        ("region IS NOT NULL", "NOT region IS NULL"),
        ("inner_row.x", "inner_row.x"),
        ("items[1]", "CAST(TRY_ELEMENT_AT(items, 1) AS INT)"),
        ("items[1] / 2", "CAST(CAST(TRY_ELEMENT_AT(items, 1) AS INT) DIV (2) AS INT)"),
        ("inner_row.x / 2", "CAST(inner_row.x DIV (2) AS INT)"),
        ("ARRAY[page, 2]", "ARRAY(page, 2)"),
        ("MAP['a', page][region]", "CAST(TRY_ELEMENT_AT(MAP('a', page), region) AS INT)"),
        ("ROW(page, region)", "STRUCT(page AS EXPR$0, region AS EXPR$1)"),
        ("CAST(ROW(page, region) AS ROW<x BIGINT, y STRING>)", "CAST(STRUCT(page AS EXPR$0, region AS EXPR$1) AS STRUCT<x: BIGINT, y: STRING>)"),
        ("CAST(ROW('a') AS ROW<x STRING>)", "CAST(STRUCT('a' AS EXPR$0) AS STRUCT<x: STRING>)"),
        ("ARRAY[region, 'a', NULL]", "ARRAY(region, 'a', NULL)"),
        ("CAST(items AS ARRAY<BIGINT>)", "CAST(items AS ARRAY<BIGINT>)"),
        ("CAST(NULL AS ROW<x BYTES, y TIMESTAMP(3)>)", "CAST(NULL AS STRUCT<x: BINARY, y: TIMESTAMP_NTZ>)"),
        # A whole number by a whole number is one in Flink, and a DOUBLE in Spark.
        ("page / 2", "CAST(page DIV (2) AS INT)"),
        ("user_id / page", "CAST(user_id DIV (page) AS BIGINT)"),
        ("ratio / page", "ratio / page"),
        # The digits of a quotient depend on those of both sides; of a literal, Spark has fewer.
        ("price / page", "price / CAST(page AS DECIMAL(10, 0))"),
        ("price / 3", "price / CAST(3 AS DECIMAL(10, 0))"),
        ("price / 0.25", "price / CAST(0.25 AS DECIMAL(3, 2))"),
        ("price * 2 - page", "price * CAST(2 AS DECIMAL(10, 0)) - CAST(page AS DECIMAL(10, 0))"),
        ("2.5 / ratio", "CAST(2.5 AS DECIMAL(2, 1)) / ratio"),
        ("SUM(CAST(price * 2 AS DECIMAL(12, 3)))", "CAST(SUM(CAST(price * CAST(2 AS DECIMAL(10, 0)) AS DECIMAL(12, 3))) AS DECIMAL(38, 3))"),
        ("part / part", "CAST(part / part AS FLOAT)"),
        ("part / 2", "CAST(part / CAST(2 AS FLOAT) AS FLOAT)"),
        ("part * page", "part * CAST(page AS FLOAT)"),
        ("page / 2 / 3", "CAST(CAST(page DIV (2) AS INT) DIV (3) AS INT)"),
        # Sums and averages have the type of what they sum.
        ("SUM(page)", "CAST(SUM(page) AS INT)"),
        ("SUM(price)", "CAST(SUM(price) AS DECIMAL(38, 2))"),
        ("SUM(-price)", "CAST(SUM(-price) AS DECIMAL(38, 2))"),
        ("SUM(ABS(price))", "CAST(SUM(ABS(price)) AS DECIMAL(38, 2))"),
        ("SUM(CASE WHEN flag THEN price ELSE 0 END)", "CAST(SUM(CASE WHEN flag THEN price ELSE 0 END) AS DECIMAL(38, 2))"),
        ("SUM(CASE WHEN flag THEN price END)", "CAST(SUM(CASE WHEN flag THEN price END) AS DECIMAL(38, 2))"),
        ("SUM(COALESCE(price, 0.125))", "CAST(SUM(COALESCE(price, CAST(0.125 AS DECIMAL(4, 3)))) AS DECIMAL(38, 3))"),
        ("SUM(price * page)", "CAST(SUM(price * CAST(page AS DECIMAL(10, 0))) AS DECIMAL(38, 2))"),
        ("SUM(price * price)", "CAST(SUM(price * price) AS DECIMAL(38, 4))"),
        ("SUM(price * (1 - 0.25))", "CAST(SUM(price * (CAST(1 AS DECIMAL(10, 0)) - CAST(0.25 AS DECIMAL(3, 2)))) AS DECIMAL(38, 4))"),
        # With a DOUBLE or a FLOAT a DECIMAL is a DOUBLE in both.
        ("SUM(price * ratio)", "CAST(SUM(price * ratio) AS DOUBLE)"),
        ("SUM(-(price + part) * page)", "CAST(SUM(-(price + part) * page) AS DOUBLE)"),
        ("SUM(CASE WHEN flag THEN price ELSE ratio END)", "CAST(SUM(CASE WHEN flag THEN price ELSE ratio END) AS DOUBLE)"),
        ("AVG(price * ratio)", "CAST(AVG(price * ratio) AS DOUBLE)"),
        ("FLOOR(price * ratio)", "CAST(FLOOR(price * ratio) AS DOUBLE)"),
        ("ROUND(price * ratio, 1)", "CAST(ROUND(price * ratio, 1) AS DOUBLE)"),
        ("SIGN(price - part)", "CAST(SIGN(price - part) AS DOUBLE)"),
        ("ARRAY[price * ratio][1]", "CAST(TRY_ELEMENT_AT(ARRAY(CAST(price * ratio AS DOUBLE)), 1) AS DOUBLE)"),
        ("MAP['a', price / part]['a']", "CAST(TRY_ELEMENT_AT(MAP('a', CAST(price / part AS DOUBLE)), 'a') AS DOUBLE)"),
        ("SUM(part / price)", "CAST(SUM(part / price) AS DOUBLE)"),
        ("SUM(-(part / price) / part)", "CAST(SUM(-(part / price) / part) AS DOUBLE)"),
        ("SUM(ROUND(price, 1))", "CAST(SUM(CAST(ROUND(price, 1) AS DECIMAL(10, 1))) AS DECIMAL(38, 1))"),
        ("SUM(ROUND(price))", "CAST(SUM(CAST(ROUND(price) AS DECIMAL(9, 0))) AS DECIMAL(38, 0))"),
        ("SUM(ROUND(price * price, -2))", "CAST(SUM(CAST(ROUND(price * price, -2) AS DECIMAL(18, 0))) AS DECIMAL(38, 0))"),
        ("SUM(ROUND(price, 5))", "CAST(SUM(CAST(ROUND(price, 5) AS DECIMAL(10, 2))) AS DECIMAL(38, 2))"),
        # A whole number has ten digits in a CASE, in both, so that fewer are left behind the point.
        ("SUM(CASE WHEN flag THEN CAST(price AS DECIMAL(38, 32)) ELSE 0 END)", "CAST(SUM(CASE WHEN flag THEN CAST(price AS DECIMAL(38, 32)) ELSE 0 END) AS DECIMAL(38, 28))"),
        ("SUM(price / 3)", "CAST(SUM(price / CAST(3 AS DECIMAL(10, 0))) AS DECIMAL(38, 13))"),
        ("AVG(page)", "CAST(SUM(page) DIV COUNT(page) AS INT)"),
        ("AVG(ratio)", "CAST(AVG(ratio) AS DOUBLE)"),
        ("SUM(page) FILTER (WHERE flag)", "CAST(SUM(page) FILTER(WHERE flag) AS INT)"),
        ("COUNT(DISTINCT page)", "COUNT(DISTINCT page)"),
        ("SUM(page) OVER (PARTITION BY region)", "CAST(SUM(page) OVER (PARTITION BY region) AS INT)"),
        ("SUM(page / 2)", "CAST(SUM(CAST(page DIV (2) AS INT)) AS INT)"),
        ("FLOOR(ratio)", "CAST(FLOOR(ratio) AS DOUBLE)"),
        ("FLOOR(moment TO HOUR)", "CAST(DATE_TRUNC('HOUR', moment) AS TIMESTAMP)"),
        # Casts.
        ("CAST(page AS STRING)", "CAST(page AS STRING)"),
        ("CAST(flag AS STRING)", "CAST(UPPER(CAST(flag AS STRING)) AS STRING)"),
        ("CAST(region AS TIMESTAMP(6))", "CAST(region AS TIMESTAMP_NTZ)"),
        ("CAST(region AS TIMESTAMP_LTZ(3))", "CAST(DATE_TRUNC('MILLISECOND', CAST(region AS TIMESTAMP)) AS TIMESTAMP)"),
        ("CAST(page AS DECIMAL)", "CAST(page AS DECIMAL(10, 0))"),
        ("CAST(region AS BYTES)", "CAST(region AS BINARY)"),
        ("TRY_CAST(region AS DOUBLE)", "TRY_CAST(region AS DOUBLE)"),
        ("TRY_CAST(page AS BIGINT)", "TRY_CAST(page AS BIGINT)"),
        ("CAST(NULL AS INT)", "CAST(NULL AS INT)"),
        ("DATE '2024-01-01'", "CAST('2024-01-01' AS DATE)"),
        ("TIMESTAMP '2024-01-01 00:00:00'", "CAST('2024-01-01 00:00:00' AS TIMESTAMP_NTZ)"),
        ("moment + INTERVAL '1' DAY", "moment + INTERVAL '1' DAY"),
        # Functions.
        ("CHAR_LENGTH(region)", "CAST(CHAR_LENGTH(region) AS INT)"),
        ("POSITION('a' IN region)", "CAST(INSTR(region, 'a') AS INT)"),
        ("INSTR(region, 'a')", "CAST(INSTR(region, 'a') AS INT)"),
        ("LOCATE('a', region)", "CAST(INSTR(region, 'a') AS INT)"),
        ("EXTRACT(SECOND FROM moment)", "CAST(EXTRACT(SECOND FROM moment) AS BIGINT)"),
        ("YEAR(day_)", "CAST(EXTRACT(YEAR FROM day_) AS BIGINT)"),
        ("SUBSTRING(region, 2, 3)", "CAST(SUBSTRING(region, 2, 3) AS STRING)"),
        ("SUBSTRING(region FROM 2 FOR 3)", "CAST(SUBSTRING(region, 2, 3) AS STRING)"),
        ("REPLACE(region, 'a', '$')", "CAST(REPLACE(region, 'a', '$') AS STRING)"),
        ("REGEXP_REPLACE(region, '[a$]', '_')", "CAST(REGEXP_REPLACE(region, '[a$]', '_') AS STRING)"),
        ("MOD(page + 1, 2)", "(page + 1) % (2)"),
        ("TO_TIMESTAMP_LTZ(user_id, 3)", "CAST(TIMESTAMP_MILLIS(user_id) AS TIMESTAMP)"),
        ("DATE_FORMAT(moment, 'yyyy-MM-dd HH:mm')", "CAST(DATE_FORMAT(moment, 'yyyy-MM-dd HH:mm') AS STRING)"),
        ("COALESCE(region, 'x')", "COALESCE(region, 'x')"),
        ("IFNULL(region, 'x')", "COALESCE(region, 'x')"),
        ("LOCALTIMESTAMP", "CAST(LOCALTIMESTAMP() AS TIMESTAMP_NTZ)"),
        ("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP()"),
    ],
)  # fmt: skip
def test_a_value_in_spark(flink: str, spark: str) -> None:
    """Spark is given what has Flink's result, in Flink's type."""
    assert spark_of(flink) == spark


@pytest.mark.parametrize(
    ("expression", "at", "sentence"),
    [
        ("page + MY_OWN(region)", 7, "function MY_OWN: it is not run"),
        ("PROCTIME()", 0, "function PROCTIME: Spark has no column of processing time"),
        ("UPPER(region, 1)", 0, "function UPPER takes 1 arguments, not 2."),
        ("SUBSTRING(region)", 10, "function SUBSTRING takes 2 to 3 arguments, not 1."),
        ("SUBSTRING(region, -4)", 10, "SUBSTRING takes a start of 1 or more"),
        ("SUBSTRING(region, 0, 2)", 10, "SUBSTRING takes a start of 1 or more"),
        ("SUBSTR(region, page)", 0, "SUBSTRING takes a start of 1 or more"),
        ("SUBSTR(region, 2, -1)", 0, "SUBSTRING takes a start of 1 or more"),
        ("REPLACE(region, '', '-')", 0, "REPLACE takes a text in quotes"),
        ("REPLACE(region, region, '-')", 0, "REPLACE takes a text in quotes"),
        ("REGEXP_REPLACE(region, '(l)', '[$1]')", 0, "REGEXP_REPLACE takes a replacement in quotes"),
        ("REGEXP_REPLACE(region, 'l', region)", 0, "REGEXP_REPLACE takes a replacement in quotes"),
        ("MOD(ratio, 2)", 0, "the type of what '(`v`.`ratio`) % (2)' takes"),
        ("TRY_CAST(region AS INT)", 9, "'TRY_CAST(`v`.`region` AS INT)': what TRY_CAST of"),
        ("TRY_CAST(user_id AS INT)", 9, "'TRY_CAST(`v`.`user_id` AS INT)': what TRY_CAST of BIGINT"),
        ("TRY_CAST(region AS BOOLEAN)", 9, "'TRY_CAST(`v`.`region` AS BOOLEAN)': what TRY_CAST of"),
        ("TRY_CAST(region AS DATE)", 9, "'TRY_CAST(`v`.`region` AS DATE)': what TRY_CAST of"),
        ("TRY_CAST(region AS TIMESTAMP(3))", 9, "'TRY_CAST(`v`.`region` AS TIMESTAMP(3))': what TRY_CAST of"),
        ("CAST(region AS CHAR)", 5, "'CAST(`v`.`region` AS CHAR)': expected a type"),
        ("CAST(region AS BINARY)", 5, "'CAST(`v`.`region` AS BINARY)': expected a type"),
        ("TO_TIMESTAMP_LTZ(user_id, 6)", 0, "TO_TIMESTAMP_LTZ takes 0 for seconds or 3"),
        ("DATE_FORMAT(moment, 'E')", 0, "DATE_FORMAT takes a pattern of"),
        ("EXTRACT(CENTURY FROM day_)", 21, "EXTRACT of CENTURY is not known"),
        ("CAST(moment AS STRING)", 5, "'CAST(`v`.`moment` AS TEXT)' casts TIMESTAMPTZ"),
        ("CAST(region AS VARCHAR(3))", 5, "'CAST(`v`.`region` AS VARCHAR(3))': expected a type"),
        ("CAST(page AS TIMESTAMP(3))", 5, "'CAST(`v`.`page` AS TIMESTAMP(3))' casts INT"),
        ("CAST(items AS STRING)", 5, "'CAST(`v`.`items` AS TEXT)' casts ARRAY"),
        ("AVG(price)", 0, "AVG of a DECIMAL has other digits in Spark"),
        ("SUM(CEIL(price))", 0, "the digits of what 'SUM("),
        ("SUM(MOD(price, 3))", 0, "the digits of what 'SUM("),
        ("SUM(MOD(user_id, price))", 0, "the digits of what 'SUM("),
        ("SUM(region)", 0, "the type of what 'SUM(`v`.`region`)' takes"),
        ("region LIKE 'a\\_'", 0, "a backslash in LIKE escapes in Spark"),
        ("MAP['a']", 0, "expected MAP[key, value, ...]."),
        ("ARRAY[1, 'a']", 6, "the elements of 'ARRAY(1, 'a')' have no type in common"),
        ("MAP['a', 1, 'b', TRUE]", 9, "the elements of 'ARRAY(1, TRUE)' have no type in common"),
        ("items[0]", 0, "'`v`.`items`[0]': an index is a whole number from 1 on"),
        ("items[page]", 0, "'`v`.`items`[`v`.`page`]': an index is a whole number from 1 on"),
        ("region[1]", 0, "the type of what '`v`.`region`[1]' takes an element of is not known"),
        ("CAST(ROW(flag) AS ROW<x STRING>)", 5, "'CAST(STRUCT(`v`.`flag` AS `EXPR$0`) AS STRUCT<`x` TEXT>)': within ARRAY"),
        ("CAST(ROW(at) AS ROW<x TIMESTAMP(3)>)", 5, "'CAST(STRUCT(`v`.`at` AS `EXPR$0`)"),
        ("region SIMILAR TO 'x'", 0, "'region SIMILAR TO 'x'' is not known to mean the same"),
        ("nope", 0, "column 'nope' is in none of the query's tables"),
        ("v.nope", 0, "there is no column 'nope'."),
        ("w.page", 0, "column 'page' names 'w', which is no table of the query."),
        ("CEIL(moment TO DAY)", 5, "CEIL(`v`.`moment` TO DAY) is not supported"),
    ],
)  # fmt: skip
def test_what_differs_is_refused(expression: str, at: int, sentence: str) -> None:
    """A function, type or part that is not known to give the same is refused where it stands, never guessed."""
    with pytest.raises(OptionError) as error:
        spark_of(expression)

    column = WIDTH + len("SELECT ") + at + 1
    assert str(error.value).startswith(f"SQL, line 1, column {column}: {sentence}")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT DATE_FORMAT(TIMESTAMP '2024-03-31 02:30:00', 'HH') FROM views", "DATE_FORMAT, FLOOR, TIMESTAMPDIFF and CAST"),
        ("SELECT DATE_FORMAT(moment, 'HH') FROM views", None),
        ("SELECT FLOOR(CAST(day_ AS TIMESTAMP(6)) TO HOUR) FROM views", "DATE_FORMAT, FLOOR, TIMESTAMPDIFF and CAST"),
        ("SELECT FLOOR(moment TO HOUR) FROM views", None),
        ("SELECT CAST(CAST(day_ AS TIMESTAMP(6)) AS TIMESTAMP(0)) FROM views", "DATE_FORMAT, FLOOR, TIMESTAMPDIFF and CAST"),
        ("SELECT CAST(region AS TIMESTAMP_LTZ(3)) FROM views", None),
        # Spark has watermarks of times with a zone only.
        ("SELECT at FROM views", "column 'at' is a time without a zone, which with its WATERMARK"),
        ("SELECT page FROM views WHERE DATE_FORMAT(at, 'HH') = '02'", "column 'at' is"),
        ("SELECT v.a FROM (SELECT at AS a FROM views) AS v", "column 'at' is"),
        ("SELECT page FROM (SELECT * FROM views) AS v", None),
        ("SELECT region, COUNT(*) FROM views GROUP BY region", None),
        ("SELECT * FROM views", "column 'at' is"),
        ("SELECT begin_ FROM windows", None),
    ],
)  # fmt: skip
def test_what_takes_the_zone_of_the_session(query: str, why: str | None) -> None:
    """Spark cuts and formats a time without a zone in the session's, where summer time leaves an hour out."""
    (job,) = compile_script(f"{TABLES}{query}", mode="batch").jobs
    part = job.query.only_in_utc

    if why is None:
        assert part is None
    else:
        assert part is not None
        assert part.why.startswith(why)
        assert part.place.column > WIDTH


@pytest.mark.parametrize(
    ("flink", "spark"),
    [
        ("SELECT x / 2 AS y FROM (SELECT page / 2 AS x FROM views) AS v WHERE x / 2 > 1",
         ("SELECT CAST(v.x DIV (2) AS INT) AS y FROM (SELECT CAST(views.page DIV (2) AS INT) AS x FROM {table_0} AS views) AS v "
         "WHERE CAST(v.x DIV (2) AS INT) > 1")),
        ("SELECT SUM(p) AS y FROM (SELECT price AS p FROM views UNION ALL SELECT -price * 0.1 FROM views) AS u",
         ("SELECT CAST(SUM(u.p) AS DECIMAL(38, 3)) AS y FROM (SELECT views.price AS p FROM {table_0} AS views UNION ALL "
          "SELECT -views.price * CAST(0.1 AS DECIMAL(2, 1)) AS _col_0 FROM {table_0} AS views) AS u")),
        ("SELECT SUM(p) AS y FROM (SELECT price AS p FROM views UNION ALL SELECT price * ratio FROM views) AS u",
         ("SELECT CAST(SUM(u.p) AS DOUBLE) AS y FROM (SELECT views.price AS p FROM {table_0} AS views UNION ALL "
          "SELECT views.price * views.ratio AS _col_0 FROM {table_0} AS views) AS u")),
        ("SELECT SUM(page / 2) FILTER (WHERE page / 2 / 3 > 1) AS y FROM views",
         ("SELECT CAST(SUM(CAST(views.page DIV (2) AS INT)) FILTER(WHERE CAST(CAST(views.page DIV (2) AS INT) DIV (3) AS INT) > 1) "
         "AS INT) AS y FROM {table_0} AS views")),
    ],
)  # fmt: skip
def test_types_are_those_of_the_parts_before(flink: str, spark: str) -> None:
    """What a value is depends on what stands within it, and on the queries that it is selected from."""
    (job,) = compile_script(f"{TABLES}{flink}", mode="batch").jobs

    assert job.query.sql.replace("`", "") == spark

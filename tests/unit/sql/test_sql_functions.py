"""Functions of Flink as expressions of Spark; ``tests/flink`` compares what both give."""

from __future__ import annotations

import pytest
from sqlglot import exp

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sql.function_forms import spark_expression
from pyspark_upsert_kafka.sql.script_compiler import compile_script
from pyspark_upsert_kafka.sql.sql_functions import FUNCTIONS, OVER_ROWS, REJECTED
from tests.flink.function_cases import CASES, COLUMNS
from tests.unit.sql.test_expressions import spark_of


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_is_compared_with_flink(name: str) -> None:
    """A function is taken only with calls that Flink and Spark both evaluate."""
    calls = [call for calls in CASES.get(name, {}).values() for call in calls]
    assert calls
    assert any(call.startswith(name) for call in calls)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forms_name_their_arguments(name: str) -> None:
    """What stands in an expression of Spark's without being an argument would be a column."""
    function = FUNCTIONS[name]
    if function.make is not None:
        return
    for form in function.forms:
        count = form.partition("->")[0].count(",") + 1
        arguments = [exp.Literal.number(at) for at in range(count)]
        assert not list(spark_expression(form, arguments).find_all(exp.Column))


@pytest.mark.parametrize(
    ("flink", "spark"),
    [
        ("GREATEST(page, 2)", "CAST(CASE WHEN page IS NULL OR 2 IS NULL THEN NULL ELSE GREATEST(page, 2) END AS INT)"),
        ("LEAST(region, 'a')", "CAST(CASE WHEN region IS NULL OR 'a' IS NULL THEN NULL ELSE LEAST(region, 'a') END AS STRING)"),
        ("GREATEST(page)", "CAST(page AS INT)"),
        ("GREATEST(page, user_id) / 2", "CAST(CAST(CASE WHEN page IS NULL OR user_id IS NULL THEN NULL ELSE GREATEST(page, user_id) END AS BIGINT) DIV (2) AS BIGINT)"),
        ("GREATEST(page + 1, LEAST(page, 3))", (
            "CAST(CASE WHEN (page + 1) IS NULL OR CAST(CASE WHEN page IS NULL OR 3 IS NULL THEN NULL ELSE LEAST(page, 3) END AS INT) "
            "IS NULL THEN NULL ELSE GREATEST(page + 1, CAST(CASE WHEN page IS NULL OR 3 IS NULL THEN NULL ELSE LEAST(page, 3) END AS INT)) END AS INT)")),
        ("SPLIT_INDEX(region, '.', 0)", "CAST(GET(SPLIT(NULLIF(region, ''), '\\\\Q.\\\\E'), 0) AS STRING)"),
        ("SPLIT_INDEX(region, 44, page)", "CAST(GET(SPLIT(NULLIF(region, ''), '\\\\Q,\\\\E'), page) AS STRING)"),
        ("TIMESTAMPDIFF(MINUTE, moment, moment)", "CAST((UNIX_MILLIS(moment) - UNIX_MILLIS(moment)) DIV 60000 AS INT)"),
        ("TIMESTAMPDIFF(DAY, day_, at)", "CAST((UNIX_MILLIS(at) - (CAST(UNIX_DATE(day_) AS BIGINT) * 86400000)) DIV 86400000 AS INT)"),
        ("TIMESTAMPADD(HOUR, page + 1, at)", "CAST(CAST(at AS TIMESTAMP) + (page + 1) * INTERVAL '1' HOUR AS TIMESTAMP)"),
        ("TIMESTAMPADD(MONTH, 1, day_)", "CAST(ADD_MONTHS(day_, 1) AS DATE)"),
        ("TIMESTAMPADD(HOUR, 1, day_)", "CAST(CAST(day_ AS TIMESTAMP_NTZ) + 1 * INTERVAL '1' HOUR AS TIMESTAMP_NTZ)"),
        ("LTRIM(region, 'x')", "CAST(LTRIM('x', region) AS STRING)"),
        ("CONCAT(region)", "CAST(CONCAT(region) AS STRING)"),
        ("ROUND(price, 1)", "CAST(ROUND(price, 1) AS DECIMAL(10, 1))"),
        ("SIGN(price)", "CAST(SIGN(price) AS DECIMAL(10, 2))"),
        ("CEILING(ratio)", "CAST(CEIL(ratio) AS DOUBLE)"),
        ("TO_TIMESTAMP_LTZ(user_id)", "CAST(TIMESTAMP_MILLIS(user_id) AS TIMESTAMP)"),
        ("EXTRACT(ISODOW FROM day_)", "CAST(EXTRACT(DOW_ISO FROM day_) AS BIGINT)"),
        ("ARRAY_DISTINCT(items)[1]", "CAST(TRY_ELEMENT_AT(CAST(ARRAY_DISTINCT(items) AS ARRAY<INT>), 1) AS INT)"),
        ("MAP_KEYS(MAP['a', page])", "CAST(MAP_KEYS(MAP('a', page)) AS ARRAY<STRING>)"),
        ("REGEXP_EXTRACT(region, '(a)(?:b)', 1)", "CAST(CASE WHEN REGEXP_LIKE(region, '(a)(?:b)') THEN REGEXP_EXTRACT(region, '(a)(?:b)', 1) END AS STRING)"),
    ],
)  # fmt: skip
def test_a_call_in_spark(flink: str, spark: str) -> None:
    """Spark is given what has Flink's result, in Flink's type."""
    assert spark_of(flink) == spark


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("GREATEST(page, region)", "function GREATEST: the arguments have no type in common"),
        ("GREATEST(part, ratio)", "function GREATEST: the arguments have no type in common"),
        ("GREATEST(price, page)", "function GREATEST: the arguments have no type in common"),
        ("SPLIT_INDEX(region, '', 0)", "SPLIT_INDEX takes a separator in quotes that is not empty"),
        ("SPLIT_INDEX(region, region, 0)", "SPLIT_INDEX takes a separator in quotes"),
        ("SPLIT_INDEX(region, 256, 0)", "SPLIT_INDEX takes a separator in quotes"),
        ("TIMESTAMPDIFF(MONTH, at, at)", "TIMESTAMPDIFF of MONTH is not known to be the same in Spark: weeks and the last days"),
        ("TIMESTAMPADD(MONTH, 1, moment)", "function TIMESTAMPADD: TIMESTAMPADD of months takes a time without a zone"),
        ("TIMESTAMPADD(DAY, 1, region)", "function TIMESTAMPADD: 'time' must be a time, but is STRING: CAST it AS TIMESTAMP(3)."),
        ("ROUND(page, page)", "ROUND takes a number of digits that is written as a number"),
        ("ROUND(region)", "function ROUND: 'number' must be a number, but is STRING: CAST it."),
        ("TRUNCATE(ratio)", "function TRUNCATE: the type of the first argument is not known, or not one that is taken here: expected a DECIMAL"),
        ("REGEXP_EXTRACT(region, '(a)?b', 1)", "REGEXP_EXTRACT takes group 0, or by its number one"),
        ("REGEXP_EXTRACT(region, '(a)|b', 1)", "REGEXP_EXTRACT takes group 0"),
        ("REGEXP_EXTRACT(region, '(?!(a))b', 1)", "REGEXP_EXTRACT takes group 0"),
        ("REGEXP(region, '')", "REGEXP takes a regular expression in quotes"),
        ("ENCODE(region, 'US-ASCII')", "ENCODE and DECODE take 'UTF-8'"),
        ("SHA2(region, 0)", "SHA2 takes 224, 256, 384 or 512"),
        ("ARRAY_APPEND(items, user_id)", "function ARRAY_APPEND: the arguments are ARRAY<INT> and BIGINT: CAST them"),
        ("ARRAY_SLICE(items, -1)", "ARRAY_SLICE takes a start and an end of 1 or more"),
        ("LOCATE('a', region, 0)", "LOCATE takes a start of 1 or more"),
        ("CONCAT_WS('-')", "function CONCAT_WS takes 2 or more arguments, not 1."),
        ("LPAD(region, 3, 'x')", "function LPAD: Flink counts a character beyond U+FFFF as two"),
        ("UNIX_TIMESTAMP(region)", "function UNIX_TIMESTAMP takes 0 arguments, not 1."),
        ("SPLIT_INDX(region, ',', 0)", "Did you mean SPLIT_INDEX?"),
        ("SPLIT_INDEX(region, ',', 'x')", "function SPLIT_INDEX: 'index' must be a number, but is STRING: CAST it."),
        ("SPLIT_INDEX(page, ',', 0)", "function SPLIT_INDEX: 'text' must be a text, but is INT: CAST it AS STRING."),
        ("TIMESTAMPDIFF(HOUR, '2024-01-01', at)", "function TIMESTAMPDIFF: 'begin' must be a time, but is STRING: CAST it AS TIMESTAMP(3)."),
        ("TIMESTAMPDIFF(HOUR, at, GREATEST(page, 1))", "function TIMESTAMPDIFF: 'end' must be a time, but is INT"),
        ("FROM_UNIXTIME('0')", "function FROM_UNIXTIME: 'seconds' must be a number, but is STRING"),
        ("CONCAT(region, 'a', TRUE)", "function CONCAT: 'text' must be a text, but is BOOLEAN: CAST it AS STRING."),
        ("DATE_FORMAT('2024', 'yyyy')", "function DATE_FORMAT: 'time' must be a time, but is STRING"),
        ("HOUR(region)", "function HOUR: 'time' must be a time, but is STRING"),
        ("EXTRACT(HOUR FROM region)", "function EXTRACT: 'time' must be a time, but is STRING"),
    ],
)  # fmt: skip
def test_arguments_that_would_differ_are_refused(call: str, sentence: str) -> None:
    """The sentence names what is expected, or what to use instead, where the call stands."""
    with pytest.raises(OptionError) as error:
        spark_of(call)

    assert sentence in str(error.value)
    assert str(error.value).startswith("SQL, line 1, column ")


def test_no_function_is_both_taken_and_refused() -> None:
    """Each function is in one of the tables."""
    assert not {*FUNCTIONS, *OVER_ROWS} & {*REJECTED}


@pytest.mark.parametrize("name", sorted(OVER_ROWS))
def test_functions_with_over_are_taken_as_they_are(name: str) -> None:
    """In batch mode; without an OVER they are no functions that are known."""
    arguments = "page" if name in ("LAG", "LEAD") else ""
    call = f"{name}({arguments})"
    over = "OVER (PARTITION BY region ORDER BY user_id)"

    assert call in spark_of(f"{call} {over}").upper().replace("PAGE", "page")
    with pytest.raises(OptionError, match=f"function {name}"):
        spark_of(call)


def test_the_calls_that_are_compared_are_taken() -> None:
    """`run_sql` understands each call that ``tests/flink`` evaluates."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    calls = [call for by_type in CASES.values() for calls in by_type.values() for call in calls]
    table = f"CREATE TABLE vals ({columns}) WITH ('connector' = 'kafka', 'topic' = 'v', 'properties.bootstrap.servers' = 'x:1', 'format' = 'json');"

    (job,) = compile_script(f"{table} SELECT {', '.join(calls)} FROM vals", mode="batch").jobs

    assert job.query.width == len(calls)

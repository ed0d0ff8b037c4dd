"""Each function of Flink's SQL that is supported, and what it is in Spark.

To add one: an entry in ``FUNCTIONS``, or in ``OVER_ROWS`` if it needs OVER, out of ``rejected_functions.py``; and cases in
``tests/flink/function_cases.py``, which Flink and Spark both evaluate. ``make docs`` writes the table in docs/sql-functions.md.
"""

from __future__ import annotations

from sqlglot import exp

from pyspark_upsert_kafka.sql.arguments import (
    TIMESTAMPADD,
    TIMESTAMPDIFF,
    groups,
    of_all,
    only_decimal,
    separator,
    timestamp_ltz,
    type_in,
    type_of_map,
    type_of_part,
    type_of_rounded,
    with_type_of_element,
)
from pyspark_upsert_kafka.sql.signatures import (
    Check,
    Function,
    Kind,
    binary,
    boolean,
    both,
    double,
    field_of_time,
    integer,
    literal,
    regex,
    text,
    typed_by_sqlglot,
)
from pyspark_upsert_kafka.sql.sql_types import NUMBERS


def _logarithm(call: str, number: str = "number") -> str:
    """Spark gives NULL where Flink gives NaN or infinity."""
    return (
        f"coalesce({call}({number}), CASE WHEN {number} = 0 THEN CAST('-Infinity' AS DOUBLE) "
        f"WHEN {number} < 0 THEN CAST('NaN' AS DOUBLE) END)"
    )


_TIME_PATTERN = r"(yyyy|MM|dd|HH|mm|ss|SSS|[^A-Za-z'\[\]{}#\"])*"
_PATTERN_IS = "takes a pattern of yyyy, MM, dd, HH, mm, ss and SSS, which mean the same in Spark"
_SUBSTRING_IS = "SUBSTRING takes a start of 1 or more and a length of 0 or more, written as numbers: Spark counts others differently"
_SUBSTRING = text(
    "text, start -> substring(text, start)", "text, start, length -> substring(text, start, length)",
    check=both(literal(1, "[1-9][0-9]*", _SUBSTRING_IS), literal(2, "[0-9]+", _SUBSTRING_IS)),
)  # fmt: skip
_SLICE_IS = "ARRAY_SLICE takes a start and an end of 1 or more, written as numbers: Spark counts others differently"
_CHARSET = literal(
    1, "UTF-8|UTF-16|UTF-16BE|UTF-16LE", "ENCODE and DECODE take 'UTF-8', 'UTF-16', 'UTF-16BE' or 'UTF-16LE', in quotes"
)  # fmt: skip
_BITS = literal(1, "224|256|384|512", "SHA2 takes 224, 256, 384 or 512, written as a number")


def _array(*forms: str, check: Check = list) -> Function:
    """A function whose result has the type of its first argument, an array."""
    return Function(forms, type_in("ARRAY"), check, by_type=True)


def _of_elements(form: str, kind: str | Kind) -> Function:
    """A function of an array and an element, or of two arrays."""
    return Function((form,), with_type_of_element(kind), by_type=True)


FUNCTIONS: dict[str, Function] = {
    # numbers
    "ABS": typed_by_sqlglot("number -> abs(number)", lambda given: exp.Abs(this=given[0])),
    "ACOS": double("number -> acos(number)"),
    "ASIN": double("number -> asin(number)"),
    "ATAN": double("number -> atan(number)"),
    "ATAN2": double("y, x -> atan2(y, x)"),
    "BIN": text("number -> bin(number)"),
    "CEILING": typed_by_sqlglot("number -> ceil(number)", lambda given: exp.Ceil(this=given[0])),
    "COS": double("number -> cos(number)"),
    "COSH": double("number -> cosh(number)"),
    "COT": double("number -> cot(number)"),
    "DEGREES": double("number -> degrees(number)"),
    "E": double("-> e()"),
    "EXP": double("number -> exp(number)"),
    "HEX": text("value -> hex(value)"),
    "LN": double(f"number -> {_logarithm('ln')}"),
    "LOG": double(f"number -> {_logarithm('ln')}", f"base, number -> {_logarithm('ln')} / {_logarithm('ln', 'base')}"),
    "LOG10": double(f"number -> {_logarithm('log10')}"),
    "LOG2": double(f"number -> {_logarithm('log2')}"),
    "MOD": typed_by_sqlglot("number, by -> number % by", lambda given: exp.Mod(this=exp.paren(given[0]), expression=exp.paren(given[1]))),
    "PI": double("-> pi()"),
    "POWER": double("base, exponent -> power(base, exponent)"),
    "RADIANS": double("number -> radians(number)"),
    "ROUND": Function(
        ("number -> round(number)", "number, digits -> round(number, digits)"), type_of_rounded, by_type=True,
        check=literal(1, "-?[0-9]+", "ROUND takes a number of digits that is written as a number"),
    ),
    "SIGN": Function(("number -> sign(number)",), type_in(*NUMBERS), by_type=True),
    "SIN": double("number -> sin(number)"),
    "SINH": double("number -> sinh(number)"),
    "SQRT": double("number -> sqrt(number)"),
    "TAN": double("number -> tan(number)"),
    "TANH": double("number -> tanh(number)"),
    "TRUNCATE": Function(
        (
            "number -> CASE WHEN number < 0 THEN ceil(number, 0) ELSE floor(number, 0) END",
            "number, digits -> CASE WHEN number < 0 THEN ceil(number, digits) ELSE floor(number, digits) END",
        ), only_decimal, by_type=True,
        check=literal(1, "-?[0-9]+", "TRUNCATE takes a number of digits that is written as a number"),
    ),
    # comparison and conditions
    "GREATEST": of_all("greatest"),
    "IF": typed_by_sqlglot("condition, yes, no -> if(condition, yes, no)", lambda given: exp.If(this=given[0], true=given[1], false=given[2])),
    "IFNULL": typed_by_sqlglot("value, other -> coalesce(value, other)", lambda given: exp.Coalesce(this=given[0], expressions=[given[1]])),
    "IS_ALPHA": boolean(r"text -> coalesce(rlike(text, '\A[\p{L}&&[\x{0}-\x{FFFF}]]+\z'), FALSE)"),
    "IS_DIGIT": boolean(r"text -> coalesce(rlike(text, '\A[\p{Nd}&&[\x{0}-\x{FFFF}]]+\z'), FALSE)"),
    "LEAST": of_all("least"),
    "NULLIF": typed_by_sqlglot("value, other -> nullif(value, other)", lambda given: exp.Nullif(this=given[0], expression=given[1])),
    # text
    "BTRIM": text("text -> btrim(text)", "text, characters -> btrim(text, characters)"),
    "CHARACTER_LENGTH": integer("text -> char_length(text)"),
    "CHAR_LENGTH": integer("text -> char_length(text)"),
    "CHR": text("code -> char(code)"),
    "CONCAT": text("text, more... -> concat(text, more)"),
    "CONCAT_WS": text("separator, text, more... -> concat_ws(separator, text, more)"),
    "DECODE": text("bytes, charset -> decode(bytes, charset)", check=_CHARSET),
    "ELT": text("number, text, more... -> get(array(text, more), number - 1)"),
    "ENCODE": binary("text, charset -> encode(text, charset)", _CHARSET),
    "ENDSWITH": boolean("text, part -> endswith(text, part)"),
    "FROM_BASE64": text("text -> to_binary(text, 'base64')"),
    "INSTR": integer("text, part -> instr(text, part)"),
    "LEFT": text("text, length -> left(text, length)"),
    "LOCATE": integer(
        "part, text -> instr(text, part)", "part, text, start -> locate(part, text, start)",
        check=literal(2, "[1-9][0-9]*", "LOCATE takes a start of 1 or more, written as a number: Spark counts others differently"),
    ),
    "LOWER": text("text -> lower(text)"),
    "LTRIM": text("text -> ltrim(text)", "text, characters -> ltrim(characters, text)"),
    "MD5": text("text -> md5(text)"),
    "REGEXP": boolean("text, regex -> regexp_like(text, regex)", regex("REGEXP")),
    "REGEXP_COUNT": integer("text, regex -> regexp_count(text, regex)", check=regex("REGEXP_COUNT")),
    "REGEXP_EXTRACT": text(
        "text, regex -> CASE WHEN regexp_like(text, regex) THEN regexp_extract(text, regex, 0) END",
        "text, regex, index -> CASE WHEN regexp_like(text, regex) THEN regexp_extract(text, regex, index) END",
        check=both(regex("REGEXP_EXTRACT"), groups("REGEXP_EXTRACT", "0")),
    ),
    "REGEXP_EXTRACT_ALL": Function(
        ("text, regex -> regexp_extract_all(text, regex)", "text, regex, index -> regexp_extract_all(text, regex, index)"),
        "ARRAY<STRING>", both(regex("REGEXP_EXTRACT_ALL"), groups("REGEXP_EXTRACT_ALL", "1")),
    ),
    "REGEXP_REPLACE": text(
        "text, regex, replacement -> regexp_replace(text, regex, replacement)", check=literal(2, r"[^$\\]*",
        "REGEXP_REPLACE takes a replacement in quotes without $ and \\: they stand for themselves in Flink, and not in Spark"),
    ),
    "REGEXP_SUBSTR": text("text, regex -> CASE WHEN regexp_like(text, regex) THEN regexp_extract(text, regex, 0) END", check=regex("REGEXP_SUBSTR")),
    "REPEAT": text("text, times -> repeat(text, times)"),
    "REPLACE": text(
        "text, part, replacement -> replace(text, part, replacement)",
        check=literal(1, "(?s).+", "REPLACE takes a text in quotes to search for: an empty one gives something else in Spark"),
    ),
    "REVERSE": text("text -> reverse(text)"),
    "RIGHT": text("text, length -> right(text, length)"),
    "RTRIM": text("text -> rtrim(text)", "text, characters -> rtrim(characters, text)"),
    "SHA1": text("text -> sha1(text)"),
    "SHA2": text("text, bits -> sha2(text, bits)", check=_BITS),
    "SHA224": text("text -> sha2(text, 224)"),
    "SHA256": text("text -> sha2(text, 256)"),
    "SHA384": text("text -> sha2(text, 384)"),
    "SHA512": text("text -> sha2(text, 512)"),
    "SPLIT": Function(("text, separator -> CASE WHEN text = '' THEN array() ELSE split(text, separator) END",), "ARRAY<STRING>", separator("SPLIT")),
    "SPLIT_INDEX": text("text, separator, index -> get(split(nullif(text, ''), separator), index)", check=separator("SPLIT_INDEX")),
    "STARTSWITH": boolean("text, part -> startswith(text, part)"),
    "SUBSTR": _SUBSTRING,
    "SUBSTRING": _SUBSTRING,
    "TO_BASE64": text("value -> replace(base64(CAST(value AS BINARY)), '\r\n', '')"),
    "TRANSLATE": text("text, characters, others -> translate(text, characters, others)"),
    "UPPER": text("text -> upper(text)"),
    "URL_DECODE": text("text -> try_url_decode(text)"),
    "URL_ENCODE": text("text -> url_encode(text)"),
    # times
    "DATE_FORMAT": text("time, pattern -> date_format(time, pattern)", check=literal(1, _TIME_PATTERN, f"DATE_FORMAT {_PATTERN_IS}")),
    "DAYOFMONTH": field_of_time("DAY"),
    "DAYOFWEEK": field_of_time("DOW"),
    "DAYOFYEAR": field_of_time("DOY"),
    "FROM_UNIXTIME": text(
        "seconds -> ltrim('+', from_unixtime(seconds))", "seconds, pattern -> ltrim('+', from_unixtime(seconds, pattern))",
        check=literal(1, _TIME_PATTERN, f"FROM_UNIXTIME {_PATTERN_IS}"),
    ),
    "HOUR": field_of_time("HOUR"),
    "LOCALTIMESTAMP": Function(("-> localtimestamp()",), "TIMESTAMP_NTZ"),
    "MINUTE": field_of_time("MINUTE"),
    "MONTH": field_of_time("MONTH"),
    "NOW": Function(("-> now()",), "TIMESTAMP"),
    "QUARTER": field_of_time("QUARTER"),
    "SECOND": field_of_time("SECOND"),
    "TIMESTAMPADD": TIMESTAMPADD,
    "TIMESTAMPDIFF": TIMESTAMPDIFF,
    "TO_TIMESTAMP_LTZ": Function(
        ("milliseconds -> timestamp_millis(milliseconds)", "seconds, digits -> timestamp_seconds(seconds)"), "TIMESTAMP",
        literal(1, "[03]", "TO_TIMESTAMP_LTZ takes 0 for seconds or 3 for milliseconds"), timestamp_ltz,
    ),
    "UNIX_TIMESTAMP": Function(("-> unix_timestamp()",), "BIGINT"),
    "WEEK": field_of_time("WEEK"),
    "YEAR": field_of_time("YEAR"),
    # arrays and maps
    "ARRAY_APPEND": _of_elements("array, element -> array_append(array, element)", type_in("ARRAY")),
    "ARRAY_CONCAT": _of_elements("array, other -> concat(array, other)", type_in("ARRAY")),
    "ARRAY_CONTAINS": _of_elements(
        "array, element -> CASE WHEN array IS NULL THEN NULL WHEN element IS NULL THEN cardinality(array_compact(array)) < "
        "cardinality(array) ELSE coalesce(array_contains(array, element), FALSE) END", "BOOLEAN",
    ),
    "ARRAY_DISTINCT": _array("array -> array_distinct(array)"),
    "ARRAY_EXCEPT": _of_elements("array, other -> array_except(array, other)", type_in("ARRAY")),
    "ARRAY_INTERSECT": _of_elements("array, other -> array_intersect(array, other)", type_in("ARRAY")),
    "ARRAY_JOIN": text("array, separator -> array_join(array, separator)", "array, separator, null_text -> array_join(array, separator, null_text)"),
    "ARRAY_MAX": Function(("array -> array_max(array)",), type_of_part(0), by_type=True),
    "ARRAY_MIN": Function(("array -> array_min(array)",), type_of_part(0), by_type=True),
    "ARRAY_POSITION": _of_elements("array, element -> array_position(array, element)", "INT"),
    "ARRAY_PREPEND": _of_elements("array, element -> array_prepend(array, element)", type_in("ARRAY")),
    "ARRAY_REMOVE": _of_elements("array, element -> array_remove(array, element)", type_in("ARRAY")),
    "ARRAY_REVERSE": _array("array -> reverse(array)"),
    "ARRAY_SLICE": _array(
        "array, start -> slice(array, start, 2147483647)", "array, start, last -> slice(array, start, greatest(last - start + 1, 0))",
        check=both(literal(1, "[1-9][0-9]*", _SLICE_IS), literal(2, "[1-9][0-9]*", _SLICE_IS)),
    ),
    "ARRAY_SORT": _array(
        "array -> sort_array(array)", "array, ascending -> sort_array(array, ascending)",
        check=literal(1, "TRUE|FALSE", "ARRAY_SORT takes TRUE for ascending or FALSE"),
    ),
    "ARRAY_UNION": _of_elements("array, other -> array_union(array, other)", type_in("ARRAY")),
    "CARDINALITY": integer("value -> cardinality(value)"),
    "MAP_FROM_ARRAYS": Function(("keys, values_ -> map_from_arrays(keys, values_)",), type_of_map, by_type=True),
    "MAP_KEYS": Function(("map -> map_keys(map)",), type_of_part(0), by_type=True),
    "MAP_VALUES": Function(("map -> map_values(map)",), type_of_part(1), by_type=True),
}  # fmt: skip
"""The functions that are read as a name with arguments."""

OVER_ROWS = frozenset({"DENSE_RANK", "LAG", "LEAD", "RANK", "ROW_NUMBER"})
"""Functions that need OVER, and mean the same in Flink and in Spark."""

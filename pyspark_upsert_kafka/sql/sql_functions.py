"""Each function of Flink's SQL: what it is in Spark, or why it is rejected.

To add one: an entry in ``FUNCTIONS``, or in ``OVER_ROWS`` if it needs OVER, out of ``REJECTED``; and cases in
``tests/flink/function_cases.py``, which Flink and Spark both evaluate. ``make docs`` writes the table in docs/sql-functions.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from sqlglot import exp

from pyspark_upsert_kafka.sql.function_forms import (
    Arguments,
    Check,
    Function,
    ResultType,
    spark_expression,
)
from pyspark_upsert_kafka.sql.sql_types import (
    APPROXIMATE,
    MOST_DIGITS,
    NESTED,
    NUMBERS,
    TEXTS,
    WHOLE,
    decimal_digits,
    kind_of,
    parts_of,
    spark_cast,
)

_ORDERED = frozenset(
    {"FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN", "DATE", "TIMESTAMPNTZ", "TIMESTAMPTZ"}
)
_IN_EACH_MATCH = r"(?s)(?:\\.|[^\\|()]|\((?!\?)|\(\?:|\)(?![?*{]))*"
"""Regular expressions of which each group is in each match: no choice, no group that may be left out."""

_NOT_KNOWN = "the type of the first argument is not known, or not one that is taken here"

_MILLISECONDS = {
    "SECOND": 1000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
}

_OF_DAY = "day -> (CAST(unix_date(day) AS BIGINT) * 86400000)"

_ADDED = {
    "SECOND": "INTERVAL '1' SECOND", "MINUTE": "INTERVAL '1' MINUTE", "HOUR": "INTERVAL '1' HOUR", "DAY": "INTERVAL '1' DAY",
    "WEEK": "INTERVAL '7' DAY", "MONTH": "INTERVAL '1' MONTH", "QUARTER": "INTERVAL '3' MONTH", "YEAR": "INTERVAL '1' YEAR",
}  # fmt: skip

_ADDED_TO_DAYS = {
    "DAY": "date_add(day, number)", "WEEK": "date_add(day, number * 7)", "MONTH": "add_months(day, number)",
    "QUARTER": "add_months(day, number * 3)", "YEAR": "add_months(day, number * 12)",
}  # fmt: skip


def _text(*forms: str, check: Check = list) -> Function:
    """A function whose result is a text."""
    return Function(forms, "STRING", check)


def _double(*forms: str) -> Function:
    """A function whose result is a DOUBLE."""
    return Function(forms, "DOUBLE")


def _integer(*forms: str, check: Check = list) -> Function:
    """A function whose result is an INT."""
    return Function(forms, "INT", check)


def _boolean(form: str, check: Check = list) -> Function:
    """A function whose result is TRUE, FALSE or NULL."""
    return Function((form,), "BOOLEAN", check)


def _binary(form: str, check: Check = list) -> Function:
    """A function whose result is bytes."""
    return Function((form,), "BINARY", check)


def field_of_time(field: str) -> Function:
    """A field of a date or time, as a whole number."""
    return Function((f"time -> extract({field} FROM time)",), "BIGINT")


def _typed_by_sqlglot(form: str, make: Callable[[Arguments], exp.Expr]) -> Function:
    """A function that sqlglot knows: it finds the type of the result."""
    return Function((form,), make=make)


def _literal(at: int, pattern: str, sentence: str) -> Check:
    """Accepts an argument only if it is absent, or is a literal that matches a regular expression."""

    def check(arguments: Arguments) -> Arguments:
        given = _literal_text(arguments[at]) if len(arguments) > at else None
        if len(arguments) > at and (given is None or not re.fullmatch(pattern, given)):
            raise ValueError(sentence)
        return arguments

    return check


def _literal_text(node: exp.Expr) -> str | None:
    """The text of a literal; of a number its digits."""
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return f"-{node.this.name}"
    if isinstance(node, exp.Boolean):
        return str(node.this).upper()
    return node.name if isinstance(node, exp.Literal) else None


def _regex(name: str) -> Check:
    """Accepts only a second argument that is a regular expression in quotes."""
    return _literal(
        1,
        "(?s).+",
        f"{name} takes a regular expression in quotes: an empty one gives something else in Spark",
    )


def _both(*checks: Check) -> Check:
    """Runs one check after another."""

    def check(arguments: Arguments) -> Arguments:
        for each in checks:
            arguments = each(arguments)
        return arguments

    return check


def _groups(name: str, default: str) -> Check:
    """Accepts a group only if it takes part in each match: otherwise Flink gives NULL, and Spark an empty text."""

    def check(arguments: Arguments) -> Arguments:
        index = _literal_text(arguments[2]) if len(arguments) > 2 else default
        if index != "0" and not (
            index and index.isdecimal() and re.fullmatch(_IN_EACH_MATCH, arguments[1].name)
        ):
            raise ValueError(
                f"{name} takes group 0, or by its number one of a regular expression without | and without groups that may "
                "be left out: Spark gives an empty text for a group that is not in the match, and not NULL"
            )
        return arguments

    return check


def _separator(name: str) -> Check:
    """Accepts a separator in quotes, or its character code; replaces it by a regular expression, which Spark splits by."""

    def check(arguments: Arguments) -> Arguments:
        node = arguments[1]
        given = _literal_text(node) or ""
        code = int(given) if given.isdecimal() and not node.is_string else 0
        wanted = chr(code) if 0 < code < 256 else given if node.is_string else ""
        if not wanted or r"\E" in wanted:
            raise ValueError(
                f"{name} takes a separator in quotes that is not empty: Flink and Spark split differently without one"
            )
        return [arguments[0], exp.Literal.string(rf"\Q{wanted}\E"), *arguments[2:]]

    return check


def _timestamp_ltz(arguments: Arguments) -> exp.Expr:
    """A number of seconds or milliseconds as a point in time."""
    is_seconds = len(arguments) == 2 and arguments[1].name == "0"
    name = "timestamp_seconds" if is_seconds else "timestamp_millis"
    return exp.Anonymous(this=name, expressions=[arguments[0]])


def _type_in(*kinds: str) -> ResultType:
    """The type of the first argument, which must be one of these."""

    def kind(arguments: Arguments) -> str:
        if kind_of(arguments[0]) not in kinds:
            raise ValueError(f"{_NOT_KNOWN}: expected {', '.join(kinds)}")
        return _type_of(arguments[0])

    return kind


def _type_of_rounded(arguments: Arguments) -> str | None:
    """The type of the number; of a DECIMAL by the rules of Flink's ``LogicalTypeMerging``, None if its digits are not known."""
    number, *digits = arguments
    if kind_of(number) != "DECIMAL":
        return _type_in(*NUMBERS)(arguments)
    known = decimal_digits(number)
    if known is None:
        return None
    precision, scale = map(int, known)
    kept = int(digits[0].sql()) if digits else 0
    if kept < 0:
        return f"DECIMAL({min(precision - scale + 1, MOST_DIGITS)}, 0)"
    return (
        f"DECIMAL({precision - scale + kept + 1}, {kept})"
        if kept < scale
        else f"DECIMAL({precision}, {scale})"
    )


def _only_decimal(arguments: Arguments) -> None:
    """Accepts only a DECIMAL; returns None, since the result has other digits."""
    if kind_of(arguments[0]) != "DECIMAL":
        raise ValueError(f"{_NOT_KNOWN}: expected a DECIMAL")


def _type_of_all(arguments: Arguments) -> str:
    """The common type of values that are compared."""
    kinds = {kind_of(each) for each in arguments} - {"NULL"}
    if kinds and kinds <= {*WHOLE}:
        return max(kinds, key=WHOLE.index)
    if kinds and kinds <= {*TEXTS}:
        return "STRING"
    types = {_type_of(each) for each in arguments if kind_of(each) in _ORDERED}
    if len(types) != 1 or not kinds <= _ORDERED:
        raise ValueError(
            "the arguments have no type in common that is the same in Spark: CAST them to one"
        )
    return types.pop()


def _type_of_part(at: int) -> ResultType:
    """The type of an array's elements, or an array of a map's keys (0) or values (1)."""

    def kind(arguments: Arguments) -> str:
        part = _parts_in_spark(arguments[0])[at]
        return part if kind_of(arguments[0]) == "ARRAY" else f"ARRAY<{part}>"

    return kind


def _type_of_map(arguments: Arguments) -> str:
    """The type of a map that is made of an array of keys and an array of values."""
    keys, values = (_type_of_part(0)([each]) for each in arguments)
    return f"MAP<{keys}, {values}>"


def _with_type_of_element(kind: str | ResultType) -> ResultType:
    """A type of a result; rejects a second argument that has neither the type of the first array nor that of its elements."""

    def checked(arguments: Arguments) -> str | None:
        array, other = (_type_of(each) for each in arguments)
        if array not in (other, f"ARRAY<{other}>"):
            raise ValueError(
                f"the arguments are {array} and {other}: CAST them, so that the elements have one type"
            )
        return kind(arguments) if callable(kind) else kind

    return checked


def _of_all(call: str) -> Function:
    """GREATEST or LEAST. In Flink the result is NULL if any argument is NULL; Spark ignores NULL arguments."""

    def make(arguments: Arguments) -> exp.Expr:
        if len(arguments) == 1:
            return arguments[0].copy()
        is_null = [spark_expression("value -> value IS NULL", [each]) for each in arguments]
        found = exp.Anonymous(this=call, expressions=[each.copy() for each in arguments])
        return exp.Case(ifs=[exp.If(this=exp.or_(*is_null), true=exp.null())], default=found)

    form = f"value, more... -> CASE WHEN value IS NULL OR more IS NULL THEN NULL ELSE {call}(value, more) END"
    return Function((form,), _type_of_all, make=make, by_type=True)


def _unit(name: str, units: Collection[str], why: str) -> Check:
    """Accepts only these units of time as the first argument; replaces the unit by a text."""

    def check(arguments: Arguments) -> Arguments:
        unit = arguments[0].name.upper()
        if unit not in units:
            raise ValueError(
                f"{name} of {unit} is not known to be the same in Spark: {why} {', '.join(units)}"
            )
        return [exp.Literal.string(unit), *arguments[1:]]

    return check


def _difference(arguments: Arguments) -> exp.Expr:
    """The number of whole units between two times, truncated towards 0; a day has 24 hours."""
    sides = [
        spark_expression(
            _OF_DAY if kind_of(each) == "DATE" else "time -> unix_millis(time)", [each]
        )
        for each in arguments[1:]
    ]
    return spark_expression(f"a, b -> (b - a) DIV {_MILLISECONDS[arguments[0].name]}", sides)


_TIMESTAMPDIFF = Function(
    ("unit, begin_, end_ -> (unix_millis(end_) - unix_millis(begin_)) DIV milliseconds",),
    "INT",
    _unit(
        "TIMESTAMPDIFF",
        _MILLISECONDS,
        "weeks and the last days of months count differently. Expected",
    ),
    _difference,
    by_type=True,
)


def _added(arguments: Arguments) -> exp.Expr:
    """Adds units to a time or a date; hours added to a date give a time without a zone."""
    unit, number, time = arguments[0].name, *arguments[1:]
    kind = kind_of(time)
    if kind == "DATE" and unit in _ADDED_TO_DAYS:
        form = f"number, day -> {_ADDED_TO_DAYS[unit]}"
        return spark_cast(spark_expression(form, [number, time]), "DATE")
    if kind not in ("DATE", "TIMESTAMPNTZ", "TIMESTAMPTZ"):
        raise ValueError(
            "the last argument of TIMESTAMPADD is not known to be a time: CAST it AS TIMESTAMP(3)"
        )
    if kind == "TIMESTAMPTZ" and unit in ("MONTH", "QUARTER", "YEAR"):
        raise ValueError(
            "TIMESTAMPADD of months takes a time without a zone: CAST it AS TIMESTAMP(3)"
        )
    target = "TIMESTAMP" if kind == "TIMESTAMPTZ" else "TIMESTAMP_NTZ"
    sides = [number, spark_cast(time.copy(), target)]
    return spark_cast(
        spark_expression(f"number, time -> time + number * {_ADDED[unit]}", sides), target
    )


_TIMESTAMPADD = Function(
    ("unit, number, time -> time + number * INTERVAL '1' unit",),
    None,
    _unit("TIMESTAMPADD", _ADDED, "expected"),
    _added,
    by_type=True,
)


def _type_of(node: exp.Expr) -> str:
    """The type of a value as Spark's SQL names it.

    Raises:
        ValueError: It is not known, or the digits of a DECIMAL are not; with a sentence.
    """
    kind = kind_of(node)
    if kind in ("UNKNOWN", "NULL") or node.type is None:
        raise ValueError("the type of an argument is not known: CAST it")
    if kind in APPROXIMATE:
        return kind
    if kind != "DECIMAL":
        return str(node.type.sql("spark")).replace("VARCHAR", "STRING")
    digits = decimal_digits(node)
    if digits is None:
        raise ValueError("the digits of an argument are not known: CAST it AS DECIMAL(p, s)")
    return f"DECIMAL({digits[0]}, {digits[1]})"


def _parts_in_spark(node: exp.Expr) -> list[str]:
    """The types within the type of an array or a map, as Spark's SQL names them; raises ValueError where it is neither."""
    if node.type is None or kind_of(node) not in NESTED:
        raise ValueError("the first argument is not known to be an array or a map: CAST it")
    return [part.sql("spark").replace("VARCHAR", "STRING") for part in parts_of(node.type)]


def _logarithm(call: str, number: str = "number") -> str:
    """Spark gives NULL where Flink gives NaN or infinity."""
    return (
        f"coalesce({call}({number}), CASE WHEN {number} = 0 THEN CAST('-Infinity' AS DOUBLE) "
        f"WHEN {number} < 0 THEN CAST('NaN' AS DOUBLE) END)"
    )


_TIME_PATTERN = r"(yyyy|MM|dd|HH|mm|ss|SSS|[^A-Za-z'\[\]{}#\"])*"
_PATTERN_IS = "takes a pattern of yyyy, MM, dd, HH, mm, ss and SSS, which mean the same in Spark"
_SUBSTRING_IS = "SUBSTRING takes a start of 1 or more and a length of 0 or more, written as numbers: Spark counts others differently"
_SUBSTRING = _text(
    "text, start -> substring(text, start)", "text, start, length -> substring(text, start, length)",
    check=_both(_literal(1, "[1-9][0-9]*", _SUBSTRING_IS), _literal(2, "[0-9]+", _SUBSTRING_IS)),
)  # fmt: skip
_SLICE_IS = "ARRAY_SLICE takes a start and an end of 1 or more, written as numbers: Spark counts others differently"
_CHARSET = _literal(
    1, "UTF-8|UTF-16|UTF-16BE|UTF-16LE", "ENCODE and DECODE take 'UTF-8', 'UTF-16', 'UTF-16BE' or 'UTF-16LE', in quotes"
)  # fmt: skip
_BITS = _literal(1, "224|256|384|512", "SHA2 takes 224, 256, 384 or 512, written as a number")


def _array(*forms: str, check: Check = list) -> Function:
    """A function whose result has the type of its first argument, an array."""
    return Function(forms, _type_in("ARRAY"), check, by_type=True)


def _of_elements(form: str, kind: str | ResultType) -> Function:
    """A function of an array and an element, or of two arrays."""
    return Function((form,), _with_type_of_element(kind), by_type=True)


FUNCTIONS: dict[str, Function] = {
    # numbers
    "ABS": _typed_by_sqlglot("number -> abs(number)", lambda given: exp.Abs(this=given[0])),
    "ACOS": _double("number -> acos(number)"),
    "ASIN": _double("number -> asin(number)"),
    "ATAN": _double("number -> atan(number)"),
    "ATAN2": _double("y, x -> atan2(y, x)"),
    "BIN": _text("number -> bin(number)"),
    "CEILING": _typed_by_sqlglot("number -> ceil(number)", lambda given: exp.Ceil(this=given[0])),
    "COS": _double("number -> cos(number)"),
    "COSH": _double("number -> cosh(number)"),
    "COT": _double("number -> cot(number)"),
    "DEGREES": _double("number -> degrees(number)"),
    "E": _double("-> e()"),
    "EXP": _double("number -> exp(number)"),
    "HEX": _text("value -> hex(value)"),
    "LN": _double(f"number -> {_logarithm('ln')}"),
    "LOG": _double(f"number -> {_logarithm('ln')}", f"base, number -> {_logarithm('ln')} / {_logarithm('ln', 'base')}"),
    "LOG10": _double(f"number -> {_logarithm('log10')}"),
    "LOG2": _double(f"number -> {_logarithm('log2')}"),
    "MOD": _typed_by_sqlglot("number, by -> number % by", lambda given: exp.Mod(this=exp.paren(given[0]), expression=exp.paren(given[1]))),
    "PI": _double("-> pi()"),
    "POWER": _double("base, exponent -> power(base, exponent)"),
    "RADIANS": _double("number -> radians(number)"),
    "ROUND": Function(
        ("number -> round(number)", "number, digits -> round(number, digits)"), _type_of_rounded, by_type=True,
        check=_literal(1, "-?[0-9]+", "ROUND takes a number of digits that is written as a number"),
    ),
    "SIGN": Function(("number -> sign(number)",), _type_in(*NUMBERS), by_type=True),
    "SIN": _double("number -> sin(number)"),
    "SINH": _double("number -> sinh(number)"),
    "SQRT": _double("number -> sqrt(number)"),
    "TAN": _double("number -> tan(number)"),
    "TANH": _double("number -> tanh(number)"),
    "TRUNCATE": Function(
        (
            "number -> CASE WHEN number < 0 THEN ceil(number, 0) ELSE floor(number, 0) END",
            "number, digits -> CASE WHEN number < 0 THEN ceil(number, digits) ELSE floor(number, digits) END",
        ), _only_decimal, by_type=True,
        check=_literal(1, "-?[0-9]+", "TRUNCATE takes a number of digits that is written as a number"),
    ),
    # comparison and conditions
    "GREATEST": _of_all("greatest"),
    "IF": _typed_by_sqlglot("condition, yes, no -> if(condition, yes, no)", lambda given: exp.If(this=given[0], true=given[1], false=given[2])),
    "IFNULL": _typed_by_sqlglot("value, other -> coalesce(value, other)", lambda given: exp.Coalesce(this=given[0], expressions=[given[1]])),
    "IS_ALPHA": _boolean(r"text -> coalesce(rlike(text, '\A[\p{L}&&[\x{0}-\x{FFFF}]]+\z'), FALSE)"),
    "IS_DIGIT": _boolean(r"text -> coalesce(rlike(text, '\A[\p{Nd}&&[\x{0}-\x{FFFF}]]+\z'), FALSE)"),
    "LEAST": _of_all("least"),
    "NULLIF": _typed_by_sqlglot("value, other -> nullif(value, other)", lambda given: exp.Nullif(this=given[0], expression=given[1])),
    # text
    "BTRIM": _text("text -> btrim(text)", "text, characters -> btrim(text, characters)"),
    "CHARACTER_LENGTH": _integer("text -> char_length(text)"),
    "CHAR_LENGTH": _integer("text -> char_length(text)"),
    "CHR": _text("code -> char(code)"),
    "CONCAT": _text("text, more... -> concat(text, more)"),
    "CONCAT_WS": _text("separator, text, more... -> concat_ws(separator, text, more)"),
    "DECODE": _text("bytes, charset -> decode(bytes, charset)", check=_CHARSET),
    "ELT": _text("number, text, more... -> get(array(text, more), number - 1)"),
    "ENCODE": _binary("text, charset -> encode(text, charset)", _CHARSET),
    "ENDSWITH": _boolean("text, part -> endswith(text, part)"),
    "FROM_BASE64": _text("text -> to_binary(text, 'base64')"),
    "INSTR": _integer("text, part -> instr(text, part)"),
    "LEFT": _text("text, length -> left(text, length)"),
    "LOCATE": _integer(
        "part, text -> instr(text, part)", "part, text, start -> locate(part, text, start)",
        check=_literal(2, "[1-9][0-9]*", "LOCATE takes a start of 1 or more, written as a number: Spark counts others differently"),
    ),
    "LOWER": _text("text -> lower(text)"),
    "LTRIM": _text("text -> ltrim(text)", "text, characters -> ltrim(characters, text)"),
    "MD5": _text("text -> md5(text)"),
    "REGEXP": _boolean("text, regex -> regexp_like(text, regex)", _regex("REGEXP")),
    "REGEXP_COUNT": _integer("text, regex -> regexp_count(text, regex)", check=_regex("REGEXP_COUNT")),
    "REGEXP_EXTRACT": _text(
        "text, regex -> CASE WHEN regexp_like(text, regex) THEN regexp_extract(text, regex, 0) END",
        "text, regex, index -> CASE WHEN regexp_like(text, regex) THEN regexp_extract(text, regex, index) END",
        check=_both(_regex("REGEXP_EXTRACT"), _groups("REGEXP_EXTRACT", "0")),
    ),
    "REGEXP_EXTRACT_ALL": Function(
        ("text, regex -> regexp_extract_all(text, regex)", "text, regex, index -> regexp_extract_all(text, regex, index)"),
        "ARRAY<STRING>", _both(_regex("REGEXP_EXTRACT_ALL"), _groups("REGEXP_EXTRACT_ALL", "1")),
    ),
    "REGEXP_REPLACE": _text(
        "text, regex, replacement -> regexp_replace(text, regex, replacement)", check=_literal(2, r"[^$\\]*",
        "REGEXP_REPLACE takes a replacement in quotes without $ and \\: they stand for themselves in Flink, and not in Spark"),
    ),
    "REGEXP_SUBSTR": _text("text, regex -> CASE WHEN regexp_like(text, regex) THEN regexp_extract(text, regex, 0) END", check=_regex("REGEXP_SUBSTR")),
    "REPEAT": _text("text, times -> repeat(text, times)"),
    "REPLACE": _text(
        "text, part, replacement -> replace(text, part, replacement)",
        check=_literal(1, "(?s).+", "REPLACE takes a text in quotes to search for: an empty one gives something else in Spark"),
    ),
    "REVERSE": _text("text -> reverse(text)"),
    "RIGHT": _text("text, length -> right(text, length)"),
    "RTRIM": _text("text -> rtrim(text)", "text, characters -> rtrim(characters, text)"),
    "SHA1": _text("text -> sha1(text)"),
    "SHA2": _text("text, bits -> sha2(text, bits)", check=_BITS),
    "SHA224": _text("text -> sha2(text, 224)"),
    "SHA256": _text("text -> sha2(text, 256)"),
    "SHA384": _text("text -> sha2(text, 384)"),
    "SHA512": _text("text -> sha2(text, 512)"),
    "SPLIT": Function(("text, separator -> CASE WHEN text = '' THEN array() ELSE split(text, separator) END",), "ARRAY<STRING>", _separator("SPLIT")),
    "SPLIT_INDEX": _text("text, separator, index -> get(split(nullif(text, ''), separator), index)", check=_separator("SPLIT_INDEX")),
    "STARTSWITH": _boolean("text, part -> startswith(text, part)"),
    "SUBSTR": _SUBSTRING,
    "SUBSTRING": _SUBSTRING,
    "TO_BASE64": _text("value -> replace(base64(CAST(value AS BINARY)), '\r\n', '')"),
    "TRANSLATE": _text("text, characters, others -> translate(text, characters, others)"),
    "UPPER": _text("text -> upper(text)"),
    "URL_DECODE": _text("text -> try_url_decode(text)"),
    "URL_ENCODE": _text("text -> url_encode(text)"),
    # times
    "DATE_FORMAT": _text("time, pattern -> date_format(time, pattern)", check=_literal(1, _TIME_PATTERN, f"DATE_FORMAT {_PATTERN_IS}")),
    "DAYOFMONTH": field_of_time("DAY"),
    "DAYOFWEEK": field_of_time("DOW"),
    "DAYOFYEAR": field_of_time("DOY"),
    "FROM_UNIXTIME": _text(
        "seconds -> ltrim('+', from_unixtime(seconds))", "seconds, pattern -> ltrim('+', from_unixtime(seconds, pattern))",
        check=_literal(1, _TIME_PATTERN, f"FROM_UNIXTIME {_PATTERN_IS}"),
    ),
    "HOUR": field_of_time("HOUR"),
    "LOCALTIMESTAMP": Function(("-> localtimestamp()",), "TIMESTAMP_NTZ"),
    "MINUTE": field_of_time("MINUTE"),
    "MONTH": field_of_time("MONTH"),
    "NOW": Function(("-> now()",), "TIMESTAMP"),
    "QUARTER": field_of_time("QUARTER"),
    "SECOND": field_of_time("SECOND"),
    "TIMESTAMPADD": _TIMESTAMPADD,
    "TIMESTAMPDIFF": _TIMESTAMPDIFF,
    "TO_TIMESTAMP_LTZ": Function(
        ("milliseconds -> timestamp_millis(milliseconds)", "seconds, digits -> timestamp_seconds(seconds)"), "TIMESTAMP",
        _literal(1, "[03]", "TO_TIMESTAMP_LTZ takes 0 for seconds or 3 for milliseconds"), _timestamp_ltz,
    ),
    "UNIX_TIMESTAMP": Function(("-> unix_timestamp()",), "BIGINT"),
    "WEEK": field_of_time("WEEK"),
    "YEAR": field_of_time("YEAR"),
    # arrays and maps
    "ARRAY_APPEND": _of_elements("array, element -> array_append(array, element)", _type_in("ARRAY")),
    "ARRAY_CONCAT": _of_elements("array, other -> concat(array, other)", _type_in("ARRAY")),
    "ARRAY_CONTAINS": _of_elements(
        "array, element -> CASE WHEN array IS NULL THEN NULL WHEN element IS NULL THEN cardinality(array_compact(array)) < "
        "cardinality(array) ELSE coalesce(array_contains(array, element), FALSE) END", "BOOLEAN",
    ),
    "ARRAY_DISTINCT": _array("array -> array_distinct(array)"),
    "ARRAY_EXCEPT": _of_elements("array, other -> array_except(array, other)", _type_in("ARRAY")),
    "ARRAY_INTERSECT": _of_elements("array, other -> array_intersect(array, other)", _type_in("ARRAY")),
    "ARRAY_JOIN": _text("array, separator -> array_join(array, separator)", "array, separator, null_text -> array_join(array, separator, null_text)"),
    "ARRAY_MAX": Function(("array -> array_max(array)",), _type_of_part(0), by_type=True),
    "ARRAY_MIN": Function(("array -> array_min(array)",), _type_of_part(0), by_type=True),
    "ARRAY_POSITION": _of_elements("array, element -> array_position(array, element)", "INT"),
    "ARRAY_PREPEND": _of_elements("array, element -> array_prepend(array, element)", _type_in("ARRAY")),
    "ARRAY_REMOVE": _of_elements("array, element -> array_remove(array, element)", _type_in("ARRAY")),
    "ARRAY_REVERSE": _array("array -> reverse(array)"),
    "ARRAY_SLICE": _array(
        "array, start -> slice(array, start, 2147483647)", "array, start, last -> slice(array, start, greatest(last - start + 1, 0))",
        check=_both(_literal(1, "[1-9][0-9]*", _SLICE_IS), _literal(2, "[1-9][0-9]*", _SLICE_IS)),
    ),
    "ARRAY_SORT": _array(
        "array -> sort_array(array)", "array, ascending -> sort_array(array, ascending)",
        check=_literal(1, "TRUE|FALSE", "ARRAY_SORT takes TRUE for ascending or FALSE"),
    ),
    "ARRAY_UNION": _of_elements("array, other -> array_union(array, other)", _type_in("ARRAY")),
    "CARDINALITY": _integer("value -> cardinality(value)"),
    "MAP_FROM_ARRAYS": Function(("keys, values_ -> map_from_arrays(keys, values_)",), _type_of_map, by_type=True),
    "MAP_KEYS": Function(("map -> map_keys(map)",), _type_of_part(0), by_type=True),
    "MAP_VALUES": Function(("map -> map_values(map)",), _type_of_part(1), by_type=True),
}  # fmt: skip
"""The functions that are read as a name with arguments."""

OVER_ROWS = frozenset({"DENSE_RANK", "LAG", "LEAD", "RANK", "ROW_NUMBER"})
"""Functions that need OVER, and mean the same in Flink and in Spark."""

_CHANCE = "its result depends on the order of rows, which differs from run to run"
_AGAIN = "a micro-batch that runs again would write other values"
_ORDER_OF_SUM = "its last digits depend on the order of rows, and on how Flink retracts rows. Write it with SUM and COUNT"
_JSON = "Spark writes and reads JSON differently: numbers, escapes and what is missing. Declare the columns of the table instead"
_UTF_16 = "Flink counts a character beyond U+FFFF as two"
_LENIENT = "Flink gives NULL for a text that it cannot read, and the two do not read the same texts"
_NO_TIME = "Spark has no type TIME"

REJECTED: dict[str, str] = {
    "ARRAY_AGG": f"{_CHANCE}.",
    "ASCII": "Flink returns the first byte of a text as a signed number, and Spark the first character. Use HEX.",
    "COLLECT": "Spark has no multisets: use COUNT with GROUP BY.",
    "CONVERT_TZ": f"{_LENIENT}. Use CAST and TIMESTAMPADD.",
    "CUME_DIST": "it is not compared with Flink yet: use COUNT with OVER.",
    "CURRENT_DATABASE": "there are no databases here.",
    "CURRENT_ROW_TIMESTAMP": "Spark has one time for all rows of a micro-batch: use CURRENT_TIMESTAMP.",
    "CURRENT_TIME": f"{_NO_TIME}: use CURRENT_TIMESTAMP.",
    "CURRENT_WATERMARK": "Spark does not show the watermark to a query.",
    "ELEMENT": "in Flink it fails for an array of several elements, and no function of Spark does. Use array[1].",
    "FIRST_VALUE": "which row is the first differs from run to run. Use MIN of the column that orders the rows.",
    "GROUPING": "it is not compared with Flink yet: write one INSERT INTO for each grouping.",
    "GROUPING_ID": "it is not compared with Flink yet: write one INSERT INTO for each grouping.",
    "GROUP_ID": "it is not compared with Flink yet: write one INSERT INTO for each grouping.",
    "INITCAP": "in Flink, a word ends at each character that is not an ASCII letter or a digit, and in Spark only at a space. Use UPPER and LOWER.",
    "IS_DECIMAL": "Flink and Spark do not agree on which texts are numbers. Use TRY_CAST(text AS DOUBLE) IS NOT NULL.",
    "JSON_ARRAY": f"{_JSON}.",
    "JSON_ARRAYAGG": f"{_CHANCE}.",
    "JSON_EXISTS": f"{_JSON}.",
    "JSON_OBJECT": f"{_JSON}.",
    "JSON_OBJECTAGG": f"{_CHANCE}.",
    "JSON_QUERY": f"{_JSON}.",
    "JSON_QUOTE": f"{_JSON}.",
    "JSON_STRING": f"{_JSON}.",
    "JSON_UNQUOTE": f"{_JSON}.",
    "JSON_VALUE": f"{_JSON}.",
    "LAST_VALUE": "which row is the last differs from run to run. Use MAX of the column that orders the rows.",
    "LISTAGG": "the order of its parts differs from run to run.",
    "LOCALTIME": f"{_NO_TIME}: use LOCALTIMESTAMP.",
    "LPAD": f"{_UTF_16}, and Spark as one. Use CONCAT and REPEAT.",
    "MAP_ENTRIES": "it is not compared with Flink yet: use CROSS JOIN UNNEST(map) AS t (k, v).",
    "MAP_UNION": "if a key is in both maps, Flink takes the last value, and Spark fails.",
    "NTILE": "it is not compared with Flink yet: use ROW_NUMBER.",
    "OVERLAY": "if the start is beyond the end of the text, Flink leaves the text unchanged, and Spark appends to it. Use SUBSTRING and ||.",
    "PARSE_JSON": f"{_JSON}.",
    "PARSE_URL": "Flink and Spark do not agree on which texts are URLs. Use REGEXP_EXTRACT.",
    "PERCENTILE": "it is not compared with Flink yet.",
    "PERCENT_RANK": "it is not compared with Flink yet: use RANK and COUNT with OVER.",
    "PRINTF": "values are shown differently. Use CONCAT and CAST(... AS STRING).",
    "PROCTIME": "Spark has no column of processing time: use CURRENT_TIMESTAMP.",
    "RAND": f"{_AGAIN}.",
    "RAND_INTEGER": f"{_AGAIN}.",
    "REGEXP_INSTR": f"{_UTF_16}, and Spark as one. Use POSITION.",
    "RPAD": f"{_UTF_16}, and Spark as one. Use CONCAT and REPEAT.",
    "STDDEV_POP": f"{_ORDER_OF_SUM}.",
    "STDDEV_SAMP": f"{_ORDER_OF_SUM}.",
    "STR_TO_MAP": "if a key occurs twice, Flink takes the last value, and Spark fails. Use SPLIT_INDEX or REGEXP_EXTRACT.",
    "TO_DATE": f"{_LENIENT}. Use CAST(text AS DATE), which fails for a text that is no date.",
    "TO_TIMESTAMP": f"{_LENIENT}. Use CAST(text AS TIMESTAMP(3)), which fails for a text that is no time.",
    "TRY_PARSE_JSON": f"{_JSON}.",
    "TYPEOF": "Spark's types have other names.",
    "UNHEX": "Flink ignores the first character of a text of odd length. Use DECODE or FROM_BASE64.",
    "UUID": f"{_AGAIN}. Use MD5 of the columns that identify the row.",
    "VARIANCE": f"{_ORDER_OF_SUM}.",
    "VAR_POP": f"{_ORDER_OF_SUM}.",
    "VAR_SAMP": f"{_ORDER_OF_SUM}.",
}

"""Functions of Flink's SQL that are rejected: the reason, or what to use instead."""

from __future__ import annotations

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

OTHERS = "it is not run, since it is not known to give the same in Spark as in Flink."
"""What is said of a function that is in no table."""

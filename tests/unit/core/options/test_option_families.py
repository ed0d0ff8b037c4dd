"""Options with a prefix, behind which users choose the name: `properties.<name>`, `metadata.<column>` and those of formats."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import OptionFamily
from pyspark_upsert_kafka.core.options.given import as_spark_passes_on, given_options
from pyspark_upsert_kafka.core.options.parsers import whole_number
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from tests.table_options import table_options

SIZES = OptionFamily("size.of.<field>", whole_number(1), help="how long", prefix="size.of.")
GIVEN = {**table_options(value__format="x"), "value.x.size.of.Trace-Id": "7"}

DDL = """
CREATE TABLE t (id BIGINT NOT NULL, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092',
    'key.format' = 'json', 'value.format' = 'x', 'value.x.size.of.Trace-Id' = '{size}'
)
"""


def formats(name, side):
    """The format x declares a family, any other nothing."""
    return (SIZES,) if name == "x" else ()


def sizes(given):
    """What the format has been given of its family, for reading and for writing."""
    read = read_options(given, formats, stream=False).table.value_format
    assert write_options(given, formats).table.value_format == read
    return dict(read.options)["size.of.<field>"]


@pytest.mark.parametrize(
    "given",
    [
        GIVEN,
        {"ddl": DDL.format(size=7)},
        {"DDL": DDL.format(size=8), "VALUE.X.SIZE.OF.Trace-Id": "7"},
    ],
    ids=["options", "ddl", "beside a ddl"],
)
def test_the_case_of_a_chosen_name_is_kept(given):
    """Of `sink.header.Trace-Id` the part behind the prefix arrives as it was written, in a DDL and in a dict."""
    assert sizes(given) == (("Trace-Id", 7),)


def test_the_case_survives_spark():
    """Spark gives the names of options in lower case: what `upsert_sink` hands over restores them, and nothing else."""
    given = given_options(GIVEN)
    passed_on = {name.lower(): value for name, value in as_spark_passes_on(given).items()}

    assert sizes(passed_on) == (("Trace-Id", 7),)
    assert as_spark_passes_on(given_options(passed_on)) == passed_on
    assert as_spark_passes_on(given_options(table_options())) == table_options()


def test_names_that_differ_in_case_are_one_option():
    """As for Spark: the last one counts."""
    assert sizes({**GIVEN, "value.x.size.of.TRACE-ID": "8"}) == (("TRACE-ID", 8),)
    assert sizes({**table_options(value__format="x")}) == ()


def test_a_wrong_value_names_the_option_and_its_place():
    """Each option of a family is checked as declared, where it stands."""
    with pytest.raises(
        OptionError, match=r"'value\.x\.size\.of\.trace-id': expected .*, but is 'a'"
    ):
        sizes({**GIVEN, "value.x.size.of.Trace-Id": "a"})
    with pytest.raises(OptionError, match=r"but is 'a'\. \(.*line 4.*\)$"):
        sizes({"ddl": DDL.format(size="a")})


def test_an_unknown_name_does_not_belong_to_a_family():
    """A prefix alone is no option, and the list of known ones has the family."""
    with pytest.raises(
        OptionError, match=r"(?s)'value\.x\.size\.of\.'.*value\.x\.size\.of\.<field>"
    ) as error:
        sizes({**GIVEN, "value.x.size.of.": "7"})

    assert "Trace" not in str(error.value)


def test_a_name_is_spelt_as_the_option_that_counts():
    """Of names that differ in case the last one counts, with its value and its case."""
    assert sizes({**GIVEN, "value.x.size.of.trace-id": "8"}) == (("trace-id", 8),)


@pytest.mark.parametrize("names", ["[1]", '"x"', "{", '{"topic": 1}', '{"topic": "other"}'])
def test_what_upsert_sink_hands_over_is_checked(names):
    """Spark's `.option()` lets anybody set it: what no `upsert_sink` wrote is an error, and no crash."""
    with pytest.raises(OptionError, match=r"^Invalid value for option 'upsert-sink\.names'"):
        given_options({**GIVEN, "upsert-sink.names": names})


@pytest.mark.parametrize("name", ["upsert-sink.names", "Upsert-Sink.Call", "ddl.columns"])
def test_internal_options_stand_in_no_ddl(name):
    """`upsert_sink` refuses them among its options, and so in its statement."""
    ddl = DDL.format(size="7', '" + name + "' = '{}")

    with pytest.raises(OptionError, match=f"^SQL, line 4, .*: option '{name.lower()}' is internal"):
        given_options({"ddl": ddl})

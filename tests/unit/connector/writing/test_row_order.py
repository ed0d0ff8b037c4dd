"""How `upsert_sink` arranges rows, on DataFrames and plans that only note what is asked of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.writing.row_order import (
    arranged,
    is_deterministic,
    partition_count,
)
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.frozen_options import WriteOptions
from pyspark_upsert_kafka.core.options.write import write_options
from tests.table_options import table_options

CHANGES = StructType().add("Id", LongType()).add("n", LongType()).add("_change_type", StringType())


class Answers:
    """What the JVM has: each attribute is a function that gives one of these values."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self._values[name]


def listed(*values: Any) -> Any:
    """A sequence of Scala."""
    return SimpleNamespace(
        length=lambda: len(values), head=lambda: values[0], apply=lambda at: values[at]
    )


def plan(partitions: int, *children: Any, name: str = "ProjectExec", **more: Any) -> Answers:
    """A physical plan."""
    return Answers(
        outputPartitioning=Answers(numPartitions=partitions),
        children=listed(*children),
        getClass=Answers(getSimpleName=name),
        **more,
    )


SCAN = plan(0, name="RDDScanExec", execute=Answers(getNumPartitions=5))


def adaptive(asked_for: str) -> Answers:
    """A plan of which the number of partitions is decided while it runs."""
    input_ = Answers(outputPartitioning=Answers(getClass=Answers(getSimpleName=asked_for)))
    return plan(0, name="AdaptiveSparkPlanExec", inputPlan=input_)


@pytest.mark.parametrize(
    ("found", "count"),
    [
        (plan(3), 3),
        (plan(1, plan(7)), 1),
        (plan(0, plan(7)), 7),
        (plan(0, plan(0, plan(7))), 7),
        (plan(0, plan(7), plan(7)), None),
        (SCAN, 5),
        (plan(0, SCAN), 5),
        (adaptive("SinglePartition$"), 1),
        (adaptive("HashPartitioning"), None),
    ],
)
def test_how_many_partitions_a_plan_gives(found: Answers, count: int | None) -> None:
    """As many as it says, or its one child; rows that are handed over have an RDD; the rest is not known."""
    rows: Any = SimpleNamespace(_jdf=Answers(queryExecution=Answers(executedPlan=found)))

    assert partition_count(rows) == count


def test_over_spark_connect_no_plan_is_seen() -> None:
    """How many partitions there are is not known then."""
    rows: Any = object()
    assert partition_count(rows) is None


@pytest.mark.parametrize("each", [[True], [True, True], [True, False], [False, True], []])
def test_an_expression_is_deterministic_if_all_of_it_is(each: list[bool]) -> None:
    """As Spark says, whatever its text looks like."""
    expressions = listed(*(Answers(deterministic=value) for value in each))
    plan_ = Answers(queryExecution=Answers(analyzed=Answers(expressions=expressions)))
    rows: Any = SimpleNamespace(select=lambda _: SimpleNamespace(_jdf=plan_))
    column: Any = "n"

    assert is_deterministic(rows, column, "rand()") is all(each)


@pytest.mark.parametrize(
    ("text", "deterministic"),
    [
        ("n", True),
        ("random", True),
        ("brand(n)", True),
        ("n + rand()", False),
        ("UUID ()", False),
        ("monotonically_increasing_id()", False),
    ],
)
def test_over_spark_connect_the_text_tells(text: str, deterministic: bool) -> None:
    """Functions that give another value each time are known by name."""
    rows: Any = SimpleNamespace(select=lambda _: object())
    column: Any = text

    assert is_deterministic(rows, column, text) is deterministic


class Column:
    """A column by its text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def isin(self, *values: str) -> Column:
        """Whether it is one of these."""
        return Column(f"{self.text} in {sorted(values)}")

    def desc(self) -> Column:
        """The largest first."""
        return Column(f"{self.text} desc")


class Rows:
    """A DataFrame that notes what is done to it."""

    def __init__(self, schema: StructType, partitions: int = 1, fails: str = "") -> None:
        self.schema, self.columns, self.log = schema, schema.fieldNames(), []
        self.fails = fails
        self._jdf = Answers(queryExecution=Answers(executedPlan=plan(partitions)))

    def __getitem__(self, name: str) -> Column:
        return Column(name)

    def _noted(self, step: str, given: Any) -> Rows:
        self.log.append((step, [getattr(each, "text", each) for each in given]))
        return self

    def repartition(self, *given: Any) -> Rows:
        """By columns, and into so many partitions."""
        return self._noted("repartition", given)

    def sortWithinPartitions(self, *by: Any) -> Rows:
        """By columns."""
        if self.fails:
            raise AnalysisException(self.fails)
        return self._noted("sort", by)

    def drop(self, *names: str) -> Rows:
        """Without columns."""
        return self._noted("drop", names)

    def select(self, _: Column) -> Rows:
        """As far as its schema, or its plan, is asked for."""
        deterministic = listed(Answers(deterministic="rand" not in _.text))
        analyzed = Answers(analyzed=Answers(expressions=deterministic))
        return SimpleNamespace(schema=None, _jdf=Answers(queryExecution=analyzed))


@pytest.fixture(autouse=True)
def _columns_by_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's functions need a session."""
    monkeypatch.setattr(functions, "lower", lambda column: Column(f"lower {column.text}"))
    monkeypatch.setattr(functions, "expr", lambda text: Column(f"expression {text}"))


def options(**more: object) -> WriteOptions:
    """Options of `upsert_sink`."""
    return write_options(table_options(**more), format_options, update_mode=True)


PREIMAGES_FIRST = "lower `_change_type` in ['-u', 'update_preimage'] desc"


@pytest.mark.parametrize(
    ("given", "partitions", "steps", "order"),
    [
        ({}, 1, [], "in-task"),
        ({}, 2, [], "unknown"),
        ({"sink.parallelism": 1}, 1, [("repartition", [1, "`Id`"])], "unknown"),
        ({"sink.parallelism": 3}, 1, [("repartition", [3, "`Id`"])], "unknown"),
        (
            {"sequence-by": "N"}, 1,
            [("repartition", ["`Id`"]), ("sort", ["`Id`", "`n`", PREIMAGES_FIRST])], "by-key",
        ),
        (
            {"sequence-by": "n + 1", "sink.parallelism": 3}, 1,
            [
                ("repartition", [3, "`Id`"]),
                ("sort", ["`Id`", "expression n + 1", PREIMAGES_FIRST]),
            ],
            "by-key",
        ),
    ],
)  # fmt: skip
def test_how_rows_are_arranged(
    given: dict[str, object], partitions: int, steps: list[Any], order: str
) -> None:
    """By key into tasks where the user wants it; sorted there by key, by what he names, and preimages first."""
    rows: Any = Rows(CHANGES, partitions)
    found, told = arranged(rows, options(**given))

    assert told == order
    assert found.log == [*steps, ("drop", [])]


def test_rows_without_changes_are_in_order() -> None:
    """No preimage waits for what follows it; columns that a sink ignores are left out, and the order of the rows by sequence."""
    schema = StructType().add("id", IntegerType()).add("_Offset", LongType()).add("v", LongType())
    rows: Any = Rows(schema, 7)
    found, order = arranged(rows, options())
    assert (found.log, order) == ([("drop", ["_Offset"])], "in-task")

    rows = Rows(schema, 7)
    found, order = arranged(rows, options(**{"sequence-by": "v"}))
    assert found.log[1] == ("sort", ["`id`", "`v`"])


def test_a_sequence_that_spark_rejects_is_told_with_the_option() -> None:
    """The first line of what Spark says."""
    rows: Any = Rows(CHANGES, fails="no column of this name\nthe plan")
    with pytest.raises(OptionError) as error:
        arranged(rows, options(**{"sequence-by": "m"}))

    assert str(error.value) == (
        "Invalid value for option 'sequence-by': expected a column or an expression that the rows can be sorted by, "
        "but is 'm': no column of this name"
    )


@pytest.mark.parametrize("sequence", ["v DESC", "v asc ", "(v + 1)  Desc", "`v` DESC"])
def test_a_direction_is_rejected(sequence: str) -> None:
    """Spark takes it for a name, and would sort upwards."""
    with pytest.raises(OptionError, match="which would be a name and no order"):
        arranged(Rows(CHANGES), options(**{"sequence-by": sequence}))  # type: ignore[arg-type]


def test_a_sequence_by_chance_is_rejected() -> None:
    """A batch that is written again would leave another row."""
    rows: Any = Rows(CHANGES)
    with pytest.raises(OptionError, match=r"'sequence-by': 'rand\(\)' is not deterministic"):
        arranged(rows, options(**{"sequence-by": "rand()"}))

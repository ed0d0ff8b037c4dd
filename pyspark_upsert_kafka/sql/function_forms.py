"""How an entry of the table of functions is written: the arguments of a function, and an expression of Spark's.

An entry has one form for each number of arguments: ``text, characters -> ltrim(characters, text)``. A last argument with
three dots stands for any number: ``text, more... -> concat(text, more)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from sqlglot import exp

from pyspark_upsert_kafka.sql.flink_query import Flink
from pyspark_upsert_kafka.sql.sql_types import IN_SPARK, spark_cast

Arguments = Sequence[exp.Expr]

_MANY = 255

ResultType = Callable[[Arguments], str | None]
"""Finds the type of a result from the arguments; None = that of the expression. Raises ValueError with a sentence."""

Check = Callable[[Arguments], Arguments]
"""Returns the arguments for the expression; raises ValueError with a sentence where Spark would give something else."""


@dataclass(frozen=True)
class Function:
    """What a function of Flink is in Spark.

    Args:
        forms: Its arguments and the expression, once for each number of arguments.
        kind: The type of the result in Spark, or a function that finds it from the arguments; None = that of the
            expression.
        check: Looks at the arguments as they are written.
        make: Makes the call in Spark, where the expression of a form cannot say it.
        by_type: Whether the call depends on the types of its arguments, and is made when these are known.
    """

    forms: tuple[str, ...]
    kind: str | ResultType | None = None
    check: Check = list
    make: Callable[[Arguments], exp.Expr] | None = None
    by_type: bool = False

    @property
    def least(self) -> int:
        """How many arguments it takes at least."""
        return min(len(_names(form)) - form.count("...") for form in self.forms)

    @property
    def most(self) -> int:
        """How many at most."""
        return max(_MANY if "..." in form else len(_names(form)) for form in self.forms)

    @property
    def counts(self) -> str:
        """How many arguments it takes, in words, for an error."""
        if self.least == self.most:
            return str(self.least)
        return f"{self.least} or more" if self.most == _MANY else f"{self.least} to {self.most}"

    def takes(self, count: int) -> bool:
        """Whether it takes this number of arguments."""
        return self.least <= count <= self.most

    def names(self, count: int) -> list[str]:
        """What the form for this number of arguments calls them."""
        return _names(self._form(count))

    def call(self, arguments: Arguments) -> exp.Expr:
        """The call in Spark.

        Raises:
            ValueError: The types of the arguments are not known, or not the same as each other; with a sentence.
        """
        made = (
            self.make(arguments)
            if self.make
            else spark_expression(self._form(len(arguments)), arguments)
        )
        kind = self.kind(arguments) if callable(self.kind) else self.kind
        return made if kind is None else spark_cast(made, kind)

    def _form(self, count: int) -> str:
        fitting = [form for form in self.forms if len(_names(form)) == count]
        return (fitting or self.forms)[-1]


def spark_expression(form: str, arguments: Arguments) -> exp.Expr:
    """The expression of a form, with each name replaced by its argument."""
    names, tree = _names(form), _tree(form).copy()
    given: dict[str, list[exp.Expr]] = {
        name: [argument] for name, argument in zip(names, arguments, strict=False)
    }
    if "..." in form:
        given[names[-1]] = list(arguments[len(names) - 1 :])
    for node in [*tree.find_all(exp.Column)]:
        values = [_in_brackets(value.copy(), node) for value in given[node.name]]
        if node is tree:
            return values[0]
        node.replace(values if "..." in form and node.name == names[-1] else values[0])
    return tree


def _in_brackets(value: exp.Expr, place: exp.Expr) -> exp.Expr:
    """The value in brackets, if it is an operator that could bind less strongly than the one around it."""
    is_safe = place.parent is None or isinstance(place.parent, (exp.Func, exp.Paren))
    is_operator = isinstance(value, (exp.Binary, exp.Unary, exp.Between, exp.In))
    return value if is_safe or not is_operator or isinstance(value, exp.Paren) else exp.paren(value)


def _names(form: str) -> list[str]:
    names = form.partition("->")[0].replace("...", "").strip()
    return [name.strip() for name in names.split(",")] if names else []


@cache
def _tree(form: str) -> exp.Expr:
    """The expression of a form; its nodes are marked as Spark's, so that nothing in it is translated again."""
    (tree,) = Flink.get_or_raise(Flink).parse(form.partition("->")[2])
    if tree is None:
        raise ValueError(f"the form {form!r} has no expression")
    for node in tree.walk():
        node.meta.clear()  # places in the form, which are none in a script
        node.meta[IN_SPARK] = True
    return tree

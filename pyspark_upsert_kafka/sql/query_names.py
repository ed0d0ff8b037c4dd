"""Names in a query: views and ``WITH`` by their queries, tables by placeholders, columns with their tables.

And the sentence about a name that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from pyspark.sql.types import StructType
from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import MappingSchema

from pyspark_upsert_kafka.sql.flink_query import Flink, Query, place_in_query

Path = tuple[str, ...]
"""The name of a table or view: its catalog and database first where they are given."""

_OURS = ("default_catalog", "default_database")


def without_default(path: Path) -> Path:
    """The name without Flink's default catalog and database, which a script need not write.

    >>> without_default(("default_catalog", "default_database", "t")), without_default(("d", "t"))
    (('t',), ('d', 't'))
    """
    for name in _OURS:
        if len(path) > 1 and path[0] == name:
            path = path[1:]
    return path


@dataclass(frozen=True)
class View:
    """A view: its query, in which other views are replaced by their queries.

    Args:
        tree: The query.
        columns: Names of its columns; empty = the names in the query.
    """

    tree: exp.Expr
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named:
    """A query whose tables are placeholders.

    Args:
        tree: The query.
        tables: The table of each placeholder.
    """

    tree: exp.Expr
    tables: Mapping[str, Path]


def inlined(
    tree: exp.Expr, query: Query, views: Mapping[Path, View], tables: Collection[Path]
) -> exp.Expr:
    """Replaces the names of views and of ``WITH`` in a query by their queries; the tree is changed.

    Raises:
        OptionError: A table or view does not exist; the text gives line and column.
    """
    _inline_with(tree, query)
    for table in [*tree.find_all(exp.Table)]:
        path = path_of(table)
        if path in views:
            table.replace(_in_place(table, views[path].tree, views[path].columns))
        elif path not in tables:
            name = ".".join(path)
            known = [".".join(each) for each in (*tables, *views)]
            sentence = f"there is no table or view '{name}' at this place of the script"
            raise place_in_query(table, query).error(with_suggestion(sentence, name, known))
    return tree


def path_of(table: exp.Table) -> Path:
    """A table's name, without Flink's default catalog and database."""
    return without_default(tuple(part.name for part in table.parts))


def with_placeholders(tree: exp.Expr) -> Named:
    """Replaces each table of a query by a placeholder, with the name of the table as its alias; the tree is changed."""
    placeholders: dict[Path, str] = {}
    for table in tree.find_all(exp.Table):
        path = path_of(table)
        name = placeholders.setdefault(path, f"__table_{len(placeholders)}__")
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(path[-1], quoted=True)))
        for part in ("db", "catalog"):
            table.set(part, None)
        table.this.set("this", name)
    return Named(tree, {name: path for path, name in placeholders.items()})


def qualified(
    named: Named, columns: Mapping[Path, StructType], query: Query
) -> tuple[exp.Expr, MappingSchema]:
    """The query with every ``*`` written out, and every column with its table; and what these columns are for sqlglot.

    Args:
        named: The query; it is changed.
        columns: The columns of each table.
        query: The query as it was read.

    Raises:
        OptionError: A column does not exist, or is in more than one table; the text gives line and column.
    """
    try:
        tree = qualify(
            named.tree,
            dialect=Flink,
            schema=_schema_of(named, columns),
            validate_qualify_columns=False,
        )
    except OptimizeError as error:
        raise _not_qualified(str(error), query) from None
    except SqlglotError as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise query.place.error(f"the query is not understood: {why}.") from None
    _check_columns(tree, query)
    return tree, _schema_of(named, columns)


def _schema_of(named: Named, columns: Mapping[Path, StructType]) -> MappingSchema:
    """The columns of the placeholders, with the types that Spark has for them."""
    kinds: dict[str, object] = {
        name: {
            field.name: exp.DataType.build(field.dataType.simpleString(), dialect="spark")
            for field in columns[path]
        }
        for name, path in named.tables.items()
    }
    return MappingSchema(kinds, dialect=Flink, normalize=False)


def _inline_with(tree: exp.Expr, query: Query) -> None:
    """Replaces the names of ``WITH``, the innermost first, so that an inner name hides an outer one."""
    holders = [node for node in tree.walk(bfs=False) if node.args.get("with_")]
    for holder in holders[::-1]:
        parts = holder.args["with_"].expressions
        holder.set("with_", None)
        for at, part in enumerate(parts):
            if part.alias in {later.alias for later in parts[at + 1 :]}:
                raise place_in_query(part, query).error(
                    f"WITH names '{part.alias}' more than once."
                )
            names = tuple(column.name for column in part.args["alias"].columns)
            for place in (*(later.this for later in parts[at + 1 :]), holder):
                for table in [*place.find_all(exp.Table)]:
                    if [name.name for name in table.parts] == [part.alias]:
                        table.replace(_in_place(table, part.this, names))


def _in_place(table: exp.Table, tree: exp.Expr, columns: tuple[str, ...]) -> exp.Subquery:
    """A query in the place of a name, under that name or the alias that it has there."""
    alias = table.args.get("alias")
    name = alias.this.copy() if alias else exp.to_identifier(path_of(table)[-1], quoted=True)
    own = [column.copy() for column in alias.columns] if alias else []
    names = own or [exp.to_identifier(column, quoted=True) for column in columns]
    return exp.Subquery(this=tree.copy(), alias=exp.TableAlias(this=name, columns=names))


def _check_columns(tree: exp.Expr, query: Query) -> None:
    for scope in traverse_scope(tree):
        for column in scope.columns:
            if not column.table:
                _refuse(column, "is in none of the query's tables, or in more than one", query)
            elif column.table not in scope.selected_sources and not scope.is_correlated_subquery:
                _refuse(column, f"names '{column.table}', which is no table of the query", query)


def _not_qualified(text: str, query: Query) -> Exception:
    """The error about a column that does not exist, with its place, which sqlglot does not know."""
    found = re.match(r"Unknown column: (\S+?)\.?$", text.splitlines()[0])
    for column in query.tree.find_all(exp.Column) if found else ():
        if found and column.name == found[1]:
            return place_in_query(column, query).error(f"there is no column '{column.name}'.")
    return query.place.error(f"{text.splitlines()[0].rstrip('.')}.")


def _refuse(column: exp.Column, why: str, query: Query) -> None:
    raise place_in_query(column, query).error(f"column '{column.name}' {why}.")


def with_suggestion(sentence: str, name: str, known: Iterable[str]) -> str:
    """Adds to a sentence about a name that does not exist: the name that may be meant, or all names.

    >>> with_suggestion("there is no table 'pageview'", "pageview", ["pageviews", "users"])
    "there is no table 'pageview'; did you mean 'pageviews'?"
    >>> with_suggestion("there is no view 'v'", "v", [])
    "there is no view 'v'."
    """
    known = list(known)
    if found := get_close_matches(name, known, n=1):
        return f"{sentence}; did you mean '{found[0]}'?"
    return f"{sentence}; there are: {', '.join(known)}." if known else f"{sentence}."

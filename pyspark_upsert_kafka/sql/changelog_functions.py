"""``FROM_CHANGELOG`` and ``TO_CHANGELOG``: rows with a column of operation codes become changes of rows, and back.

What a row does is in a column here (`stream_rows`), so both functions are a projection that makes this column of the codes, or codes of
it.
"""

from __future__ import annotations

from pyspark.sql.types import StringType, StructType
from sqlglot import exp

from pyspark_upsert_kafka.core.pages import page
from pyspark_upsert_kafka.sql.changelog_calls import FROM, KINDS, TO, ChangelogCall
from pyspark_upsert_kafka.sql.flink_query import Query, called, table_named
from pyspark_upsert_kafka.sql.stream_rows import CHANGE, Rows

CALL = "changelog-call"
"""Marks the query that a call has become."""

_IN_SPARK = dict(
    zip(KINDS, ("insert", "update_preimage", "update_postimage", "delete"), strict=True)
)
"""What the column `CHANGE` says of each kind."""

_NOT_ONLY_ADDED = (
    "FROM_CHANGELOG takes rows that are only added, and the rows of its input change: leave it out."
)
_GROUPS = (
    "TO_CHANGELOG of groups is not done: Spark does not say whether a group is new. Write them to an upsert table, and use "
    f"normalize_changelog over it in Python ({page('whole-rows.md')})."
)
_UPSERTS = (
    "the input of TO_CHANGELOG is an upsert table, which is read without the rows before: it does not say whether a row is new, nor "
    "what a deleted row was. Write what it says: input => TABLE name PARTITION BY {keys}, op_mapping => MAP['INSERT, UPDATE_AFTER', "
    f"'u', 'DELETE', 'd'], produces_full_deletes => FALSE. Or use normalize_changelog in Python ({page('whole-rows.md')})."
)


def with_changelog_functions(query: Query) -> exp.Expr:
    """A copy of the query's tree in which calls of the two functions are queries."""
    tree = query.tree.copy()
    for table in [*tree.find_all(exp.Table)]:
        call = called(table) if isinstance(table.this, exp.Anonymous) else None
        if call is not None and call.meta.get("start") in query.calls:
            table.replace(_as_query(table, call, query.calls[call.meta["start"]]))
    return tree


def call_of(select: exp.Select) -> ChangelogCall | None:
    """The call that a query was; None = it was none."""
    found: ChangelogCall | None = select.meta.get(CALL)
    return found


def first_call(tree: exp.Expr) -> ChangelogCall | None:
    """A call that a query holds; None = it holds none."""
    return next(filter(None, map(call_of, tree.find_all(exp.Select))), None)


def _as_query(table: exp.Table, call: exp.Anonymous, given: ChangelogCall) -> exp.Subquery:
    """The columns in their order: those of PARTITION BY are the first; the codes' column comes or goes."""
    source = call.expressions[0]
    if isinstance(source, exp.Column):
        source = table_named(source)
    elif not source.alias:
        source.set("alias", exp.TableAlias(this=exp.to_identifier("input", quoted=True)))
    keys = [exp.to_identifier(name, quoted=True) for name in given.keys]
    left_out = [key.copy() for key in keys]
    code = []
    if given.name == TO:
        code = [exp.alias_(exp.Literal.string(""), given.op, quoted=True)]
    else:
        left_out.append(exp.to_identifier(given.op, quoted=True))
    star = exp.Star(except_=left_out) if left_out else exp.Star()
    columns = [*(exp.Column(this=key) for key in keys), *code, star]
    select = exp.Select(expressions=columns, from_=exp.From(this=source))
    select.meta[CALL] = given
    alias = table.args.get("alias") or exp.TableAlias(
        this=exp.to_identifier(given.name.lower(), quoted=True)
    )
    return exp.Subquery(this=select, alias=alias)


def changed_rows(select: exp.Select, call: ChangelogCall, rows: Rows) -> Rows:
    """The rows that a call gives in a stream; its query is changed.

    Args:
        select: The query that the call has become, each of its columns with its table.
        call: The call.
        rows: The rows of its input.

    Raises:
        OptionError: Its meaning cannot be kept; the text gives line and column.
    """
    _check_columns(call, rows)
    return _from(select, call, rows) if call.name == FROM else _to(select, call, rows)


def check_codes(call: ChangelogCall, columns: StructType) -> None:
    """Raises OptionError where the codes that FROM_CHANGELOG reads are no texts."""
    if call.name == FROM and not isinstance(columns[call.op].dataType, StringType):
        kind = columns[call.op].dataType.simpleString().upper()
        raise call.place.error(
            f"FROM_CHANGELOG: the column '{call.op}' of operation codes is {kind}: expected STRING."
        )


def _check_columns(call: ChangelogCall, rows: Rows) -> None:
    known = ", ".join(rows.names)
    needed = [*call.keys, *([call.op] if call.name == FROM else [])]
    for name in needed:
        if name not in rows.names:
            raise call.place.error(
                f"{call.name}: its input has no column '{name}'; there are: {known}."
            )
    if call.name == FROM and call.op in call.keys:
        raise call.place.error(f"FROM_CHANGELOG: the key cannot hold the column '{call.op}'.")
    if call.name == TO and call.op in rows.names:
        raise call.place.error(
            f"TO_CHANGELOG: its input has a column '{call.op}' already. Give the codes another: op => DESCRIPTOR(name)."
        )


def _from(select: exp.Select, call: ChangelogCall, rows: Rows) -> Rows:
    if not rows.only_adds:
        raise call.place.error(_NOT_ONLY_ADDED)
    op = exp.column(call.op, select.args["from_"].this.alias_or_name, quoted=True)
    names = tuple(projection.alias_or_name for projection in select.expressions)
    kinds = {code: _IN_SPARK[kind] for kind, codes in call.codes.items() for code in codes}
    other = None if call.skips else _failure(op.copy(), call)
    select.append("expressions", exp.alias_(_by_value(op, kinds, other), CHANGE, quoted=True))
    if call.skips:
        known = exp.In(this=op.copy(), expressions=[exp.Literal.string(code) for code in kinds])
        select.set("where", exp.Where(this=known))
    if "UPDATE_AFTER" in call.codes and "UPDATE_BEFORE" not in call.codes:
        key = tuple(frozenset({names.index(name)}) for name in call.keys)
        return Rows(names, key, changes="upserts")
    return Rows(names, changes="images", in_order="UPDATE_BEFORE" in call.codes)


def _failure(op: exp.Expr, call: ChangelogCall) -> exp.Expr:
    """An expression that fails the query, and says which code it has met; not where, since checkpoints hold the query's text."""
    begin = "FROM_CHANGELOG: the operation code "
    end = f" in column '{call.op}' is not mapped: map it in op_mapping, or leave such rows out with error_handling => 'SKIP'."
    code = exp.Coalesce(this=op, expressions=[exp.Literal.string("NULL")])
    parts = [exp.Literal.string(begin), code, exp.Literal.string(end)]
    return exp.Anonymous(
        this="raise_error", expressions=[exp.Anonymous(this="concat", expressions=parts)]
    )


def _to(select: exp.Select, call: ChangelogCall, rows: Rows) -> Rows:
    codes = {kind: its[0] for kind, its in call.codes.items()}
    names = tuple(projection.alias_or_name for projection in select.expressions)
    at = names.index(call.op)
    made = Rows(names, constants=frozenset({at}) if rows.only_adds else frozenset())
    if rows.only_adds:
        _check_inserts(call, codes)
        _set_code(select, at, exp.Literal.string(codes["INSERT"]))
        return made
    if rows.changes is None:
        raise call.place.error(_GROUPS)
    if rows.changes == "upserts":
        _check_upserts(call, codes, rows)
        kinds = {"delete": codes.get("DELETE")}
        other = codes.get("INSERT")
    else:
        kinds, other = {_IN_SPARK[kind]: codes.get(kind) for kind in KINDS}, None
    change = exp.column(CHANGE, select.args["from_"].this.alias_or_name, quoted=True)
    mapped = {kind: code for kind, code in kinds.items() if code is not None}
    default = None if other is None else exp.Literal.string(other)
    _set_code(select, at, _by_value(change, mapped, default))
    _leave_out(select, change, kinds, has_other=other is not None)
    if not call.full_deletes and rows.changes == "images":
        _without_values_of_deletes(select, change, {*call.keys, call.op}, call)
    return made


def _check_inserts(call: ChangelogCall, codes: dict[str, str]) -> None:
    if "INSERT" not in codes or len(codes) not in (1, len(KINDS)):
        raise call.place.error(
            "TO_CHANGELOG: the rows of its input are only added: map INSERT, and no other kind."
        )


def _check_upserts(call: ChangelogCall, codes: dict[str, str], rows: Rows) -> None:
    key = [rows.names[min(part)] for part in rows.key or () if part]
    says_all = (
        codes.get("INSERT") == codes.get("UPDATE_AFTER")
        and "UPDATE_BEFORE" not in codes
        and ("DELETE" not in codes or not call.full_deletes)
        and set(call.keys) == set(key)
    )
    if not says_all:
        keys = key[0] if len(key) == 1 else f"({', '.join(key)})"
        raise call.place.error(_UPSERTS.format(keys=keys))


def _by_value(value: exp.Expr, texts: dict[str, str], default: exp.Expr | None) -> exp.Expr:
    ifs = [
        exp.If(this=exp.Literal.string(key), true=exp.Literal.string(text))
        for key, text in texts.items()
    ]
    return exp.Case(this=value, ifs=ifs, default=default) if ifs else default or exp.Null()


def _set_code(select: exp.Select, at: int, code: exp.Expr) -> None:
    select.expressions[at].set("this", code)


def _leave_out(
    select: exp.Select, change: exp.Expr, kinds: dict[str, str | None], *, has_other: bool
) -> None:
    """Leaves out the rows whose kind has no code."""
    mapped = [exp.Literal.string(kind) for kind, code in kinds.items() if code is not None]
    others = [exp.Literal.string(kind) for kind, code in kinds.items() if code is None]
    if has_other and others:
        unmapped = exp.In(this=change.copy(), expressions=others)
        select.set("where", exp.Where(this=exp.Not(this=unmapped)))
    elif not has_other:
        select.set("where", exp.Where(this=exp.In(this=change.copy(), expressions=mapped)))


def _without_values_of_deletes(
    select: exp.Select, change: exp.Expr, kept: set[str], call: ChangelogCall
) -> None:
    if not call.keys:
        raise call.place.error(
            "TO_CHANGELOG: produces_full_deletes => FALSE leaves the key of a deleted row, which its input does not have: write "
            "input => TABLE name PARTITION BY column."
        )
    for projection in select.expressions:
        if projection.alias_or_name not in kept:
            value = projection.unalias()
            is_delete = exp.EQ(this=change.copy(), expression=exp.Literal.string("delete"))
            value.replace(
                exp.Case(ifs=[exp.If(this=is_delete, true=exp.Null())], default=value.copy())
            )

"""What one set of columns has and another one lacks: columns, fields of structs, and types that hold more.

NOT NULL makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.core.ddl.spark_columns import type_as_ddl

_WHOLE: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)
_FLOATING: tuple[type[DataType], ...] = (FloatType, DoubleType)
_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}
_MOST_DIGITS = 38


@dataclass(frozen=True)
class AddedColumn:
    """A column that is lacking, or a field of a struct.

    Args:
        path: Its name after those of the column and the fields that it is in; ``element`` and ``value`` are what arrays
            and maps hold.
        type: Its type.
    """

    path: tuple[str, ...]
    type: DataType

    def __str__(self) -> str:
        return f"{'.'.join(self.path)!r} ({type_as_ddl(self.type)})"


@dataclass(frozen=True)
class WidenedColumn:
    """A column whose type there cannot hold all values that are wanted.

    Args:
        path: As that of `AddedColumn`.
        seen: The type that is wanted.
        there: The type that it has.
        wider: A type that holds the values of both; None = there is none.
    """

    path: tuple[str, ...]
    seen: DataType
    there: DataType
    wider: DataType | None


def field_named(name: str, fields: StructType) -> StructField | None:
    """The field of this name; if none is spelled so, the one whose name differs only in case."""
    alike = [field for field in fields if field.name.lower() == name.lower()]
    return next((field for field in alike if field.name == name), alike[0] if alike else None)


def has_path(columns: DataType, path: Sequence[str]) -> bool:
    """Whether there is such a column, or field, whatever the case of its name.

    Args:
        columns: The columns, or the type of one of them.
        path: As that of `AddedColumn`.

    >>> from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
    >>> columns = spark_columns("id INT, at ARRAY<STRUCT<City: STRING>>")
    >>> has_path(columns, ["ID"]), has_path(columns, ["at", "element", "city"]), has_path(columns, ["at", "value"])
    (True, True, False)
    """
    if not path:
        return True
    name, *inner = path
    if isinstance(columns, StructType):
        found = field_named(name, columns)
        return found is not None and has_path(found.dataType, inner)
    if isinstance(columns, ArrayType):
        return name == "element" and has_path(columns.elementType, inner)
    if isinstance(columns, MapType) and name in {"key", "value"}:
        return has_path(columns.keyType if name == "key" else columns.valueType, inner)
    return False


_LIKE = 0.8
"""How alike two names must be for one to be meant by the other."""


def near_name(name: str, fields: Sequence[str]) -> str | None:
    """The field that is meant by a name; None = none is like it.

    >>> near_name("User_ID", ["id", "userId"]), near_name("regoin", ["region"]), near_name("name", ["nosuch"])
    ('userId', 'region', None)
    """
    alike = {field.replace("_", "").casefold(): field for field in reversed(fields)}
    found = get_close_matches(name.replace("_", "").casefold(), alike, 1, _LIKE)
    return alike[found[0]] if found else None


def without_field(
    columns: DataType,
    fields: DataType,
    alike: Callable[[str], str] = str,
    path: tuple[str, ...] = (),
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """The columns that no field of messages is read into, also those in structs: their paths, and the fields there without a column.

    Args:
        columns: The columns, or the type of one of them.
        fields: The fields, or the type of that column's.
        alike: What names have in common that are the same.
        path: Where both are.

    >>> from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
    >>> fields = spark_columns("id BIGINT, at ARRAY<STRUCT<city: STRING>>")
    >>> [*without_field(spark_columns("Id BIGINT, at ARRAY<STRUCT<zip: STRING>>"), fields)]
    [(('Id',), ['id']), (('at', 'zip'), ['city'])]
    """
    if isinstance(columns, ArrayType) and isinstance(fields, ArrayType):
        yield from without_field(columns.elementType, fields.elementType, alike, path)
    elif isinstance(columns, MapType) and isinstance(fields, MapType):
        yield from without_field(columns.valueType, fields.valueType, alike, path)
    elif isinstance(columns, StructType) and isinstance(fields, StructType):
        there = {alike(field.name): field for field in fields}
        of_columns = {*map(alike, columns.names)}
        free = [field.name for name, field in there.items() if name not in of_columns]
        for column in columns:
            inner, found = (*path, column.name), there.get(alike(column.name))
            if found is None:
                yield inner, free
            else:
                yield from without_field(column.dataType, found.dataType, alike, inner)


def needed(
    wanted: DataType, there: DataType, path: tuple[str, ...] = ()
) -> Iterator[AddedColumn | WidenedColumn]:
    """What some columns lack to hold the values of others.

    Args:
        wanted: The columns that are to be held, or the type of one of them.
        there: The columns that there are, or the type of that column.
        path: Where both are.
    """
    if isinstance(wanted, StructType) and isinstance(there, StructType):
        yield from _needed_fields(wanted, there, path)
    elif isinstance(wanted, ArrayType) and isinstance(there, ArrayType):
        yield from needed(wanted.elementType, there.elementType, (*path, "element"))
    elif isinstance(wanted, MapType) and isinstance(there, MapType):
        yield from needed(wanted.keyType, there.keyType, (*path, "key"))
        yield from needed(wanted.valueType, there.valueType, (*path, "value"))
    elif not fits(wanted, there):
        yield WidenedColumn(path, wanted, there, widened(there, wanted))


def _needed_fields(
    wanted: StructType, there: StructType, path: tuple[str, ...]
) -> Iterator[AddedColumn | WidenedColumn]:
    for field in wanted:
        found = field_named(field.name, there)
        if found is None:
            yield AddedColumn((*path, field.name), _nullable(field.dataType))
        else:
            yield from needed(field.dataType, found.dataType, (*path, found.name))


def lacking(
    written: StructType, read: StructType, exempt: Collection[str] = ()
) -> dict[tuple[str, ...], str]:
    """What messages have and a query lacks, by its path in lower case, as people read it.

    That is columns and fields, and where the query has a type that holds less: a narrower one, or a column without NULL. Another
    type, which holds other values, is none of them: no columns hold both.

    Args:
        written: The columns of the messages.
        read: The columns of the query.
        exempt: Those that are not NULL, whatever messages have.

    >>> from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
    >>> lacking(spark_columns("id BIGINT, tier SMALLINT"), spark_columns("id INT, name STRING"))
    {('id',): 'id BIGINT (here INT)', ('tier',): 'tier SMALLINT'}
    """
    found: dict[tuple[str, ...], str] = {}
    for each in needed(written, read):
        path = tuple(name.lower() for name in each.path)
        if isinstance(each, AddedColumn):
            found[path] = f"{'.'.join(each.path)} {type_as_ddl(each.type)}"
        elif fits(each.there, each.seen):
            kinds = f"{type_as_ddl(each.seen)} (here {type_as_ddl(each.there)})"
            found[path] = f"{'.'.join(each.path)} {kinds}"
    for field in written:
        there = field_named(field.name, read)
        if field.nullable and there is not None and not there.nullable and there.name not in exempt:
            found.setdefault((field.name.lower(),), f"{field.name} NULL (here NOT NULL)")
    return found


def united(newer: DataType, older: DataType) -> DataType:
    """A type that has the fields of both, each with the type that holds the values of both; if there is none, with the newer one.

    >>> from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
    >>> united(spark_columns("a BIGINT, c INT"), spark_columns("a INT, b STRING")).simpleString()
    'struct<a:bigint,c:int,b:string>'
    """
    if isinstance(newer, StructType) and isinstance(older, StructType):
        return _united_fields(newer, older)
    if isinstance(newer, ArrayType) and isinstance(older, ArrayType):
        return ArrayType(
            united(newer.elementType, older.elementType), newer.containsNull or older.containsNull
        )
    if isinstance(newer, MapType) and isinstance(older, MapType):
        return MapType(
            newer.keyType,
            united(newer.valueType, older.valueType),
            newer.valueContainsNull or older.valueContainsNull,
        )
    return older if fits(newer, older) else newer


def _united_fields(newer: StructType, older: StructType) -> StructType:
    fields = []
    for field in newer:
        other = field_named(field.name, older)
        kind = field.dataType if other is None else united(field.dataType, other.dataType)
        fields.append(
            StructField(field.name, kind, field.nullable or other is None or other.nullable)
        )
    missing = (field for field in older if field_named(field.name, newer) is None)
    return StructType([*fields, *(StructField(field.name, field.dataType) for field in missing)])


def fits(wanted: DataType, there: DataType) -> bool:
    """Whether a type that has no fields holds all values of another one, exactly.

    >>> fits(IntegerType(), LongType()), fits(LongType(), DoubleType()), fits(IntegerType(), DecimalType(12, 2))
    (True, False, True)
    """
    if _same(wanted, there) or isinstance(wanted, NullType):
        return True
    if isinstance(wanted, StringType):
        return isinstance(there, StringType)
    if isinstance(there, DecimalType):
        return _whole_digits(wanted) <= there.precision - there.scale and _scale(wanted) <= there.scale  # fmt: skip
    if isinstance(there, DoubleType):
        return isinstance(wanted, (FloatType, ByteType, ShortType, IntegerType))
    if isinstance(there, FloatType):
        return isinstance(wanted, (ByteType, ShortType))
    return _place(wanted, _WHOLE) is not None and _is_before(wanted, there, _WHOLE)


def widened(there: DataType, wanted: DataType) -> DataType | None:
    """The type to which a column is widened: to a larger whole number, to DOUBLE, to a DECIMAL of more digits; None = none.

    >>> widened(DecimalType(10, 2), DecimalType(12, 1))
    DecimalType(13,2)
    >>> widened(LongType(), StringType()) is None
    True
    """
    for types in (_WHOLE, _FLOATING):
        if _is_before(there, wanted, types):
            return wanted
    if isinstance(there, DecimalType) and _scale(wanted) <= there.scale:
        digits = _whole_digits(wanted) + there.scale
        return DecimalType(digits, there.scale) if digits <= _MOST_DIGITS else None
    return None


def _same(one: DataType, other: DataType) -> bool:
    """Whether types are equal but for NOT NULL."""
    return one.simpleString() == other.simpleString()


def _nullable(kind: DataType) -> DataType:
    return StructType([StructField("it", kind)]).toNullable()["it"].dataType


def _place(kind: DataType, types: tuple[type[DataType], ...]) -> int | None:
    return types.index(type(kind)) if type(kind) in types else None


def _is_before(one: DataType, other: DataType, types: tuple[type[DataType], ...]) -> bool:
    places = _place(one, types), _place(other, types)
    return None not in places and places[0] < places[1]  # type: ignore[operator]


def _whole_digits(kind: DataType) -> int:
    if isinstance(kind, DecimalType):
        return kind.precision - kind.scale
    return _DIGITS.get(type(kind), _MOST_DIGITS + 1)


def _scale(kind: DataType) -> int:
    return kind.scale if isinstance(kind, DecimalType) else 0

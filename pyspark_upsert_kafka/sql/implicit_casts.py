"""Which types Flink casts by itself when a query's columns are written to a table's.

The rules are those of Flink's ``LogicalTypeCasts``: what can be cast without loss, and decimals of any digits. NOT NULL is no part of
it: a NULL in such a column is refused when it is written.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_WHOLE: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)
_NUMBERS: tuple[type[DataType], ...] = (*_WHOLE, DecimalType, FloatType, DoubleType)

_FROM: dict[type[DataType], tuple[type[DataType], ...]] = {
    ShortType: _WHOLE[:1],
    IntegerType: _WHOLE[:2],
    LongType: _WHOLE[:3],
    DecimalType: _NUMBERS,
    FloatType: (*_WHOLE, DecimalType),
    DoubleType: _NUMBERS,
    DateType: (TimestampNTZType, TimestampType),
    TimestampNTZType: (TimestampType,),
    TimestampType: (TimestampNTZType,),
}


def is_cast_by_itself(source: DataType, target: DataType) -> bool:
    """Whether a value of one type is written to a column of another without CAST.

    >>> is_cast_by_itself(IntegerType(), LongType()), is_cast_by_itself(LongType(), IntegerType())
    (True, False)
    """
    if isinstance(source, NullType) or type(source) in _FROM.get(type(target), ()):
        return True
    if type(source) is not type(target):
        return False
    inner = list(zip(_parts(source), _parts(target), strict=False))
    return len(_parts(source)) == len(_parts(target)) and all(
        is_cast_by_itself(one, other) for one, other in inner
    )


def _parts(kind: DataType) -> list[DataType]:
    if isinstance(kind, StructType):
        return [field.dataType for field in kind]
    if isinstance(kind, MapType):
        return [kind.keyType, kind.valueType]
    return [kind.elementType] if isinstance(kind, ArrayType) else []

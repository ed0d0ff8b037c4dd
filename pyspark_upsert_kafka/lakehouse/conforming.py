"""Values of a batch in exactly the types of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from pyspark_upsert_kafka.lakehouse.column_types import field_named, same

if TYPE_CHECKING:
    from pyspark.sql import Column


def conformed(column: Column, kind: DataType, wanted: DataType) -> Column:
    """A value in the type of the table, which can hold it: structs by the names of their fields, in the table's order.

    A field that the value does not have is NULL.

    Args:
        column: The value.
        kind: Its type.
        wanted: The type of the table.
    """
    from pyspark.sql import functions as f

    if same(kind, wanted):
        return column
    if isinstance(kind, StructType) and isinstance(wanted, StructType):
        fields = f.struct(*(_field(column, kind, field) for field in wanted))
        return f.when(column.isNotNull(), fields)
    if isinstance(kind, ArrayType) and isinstance(wanted, ArrayType):
        element, wanted_element = kind.elementType, wanted.elementType
        return f.transform(column, lambda each: conformed(each, element, wanted_element))
    if isinstance(kind, MapType) and isinstance(wanted, MapType):
        return f.map_from_arrays(
            conformed(f.map_keys(column), ArrayType(kind.keyType), ArrayType(wanted.keyType)),
            conformed(f.map_values(column), ArrayType(kind.valueType), ArrayType(wanted.valueType)),
        )
    return column.cast(wanted)


def _field(column: Column, kind: StructType, wanted: StructField) -> Column:
    from pyspark.sql import functions as f

    found = field_named(wanted.name, kind)
    if found is None:
        return f.lit(None).cast(wanted.dataType).alias(wanted.name)
    return conformed(column.getField(found.name), found.dataType, wanted.dataType).alias(
        wanted.name
    )

"""The share of a range's keys that one task of a snapshot keeps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.connector.reading.decoded_side import Mask, Selection, decode_side
from pyspark_upsert_kafka.connector.sides import read_key_side
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.values import ReadOptions
from pyspark_upsert_kafka.core.positions.offsets import Share
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.row_hash import equal_keys, row_hashes
from pyspark_upsert_kafka.kafka.fetching.raw_batch import RawBatch


class KeyShares:
    """Takes out of batches the messages whose keys are of a share: equal keys are in one, however they are spelt.

    Messages whose key cannot be read belong to the first share.

    Args:
        table: The table.
        options: How it is read.
    """

    def __init__(self, table: Table, options: ReadOptions) -> None:
        side = read_key_side(table, options)
        if side is None:
            raise ValueError("Keys are shared in snapshots only, and a snapshot has keys.")
        self._decoder = side.decoder()

    def of(self, batch: RawBatch, share: Share) -> RawBatch:
        """The messages of a share."""
        keys = decode_side(batch.keys, self._decoder, "key")
        shares = np.zeros(len(batch), dtype=np.uint64)
        shares[keys.read] = (row_hashes(keys.rows) % share.count)[keys.read]
        mask: Mask = shares == share.index
        return batch.where(mask)


def refuse_other_keys(
    name: str, column: pa.Array, from_key: pa.Array, selection: Selection
) -> None:
    """The value's copy of a key column wins over the key's, so keys that are shared must be the same in both.

    Raises:
        OptionError: They differ in a message: its row has a key that another task may keep.
    """
    # A value without a copy takes the key's, so that the two cannot differ.
    differs = pc.and_(column.is_valid(), pc.invert(equal_keys(column, from_key)))
    at = pc.index(differs, True).as_py()
    if at >= 0:
        batch, index = selection.batch, at if selection.indexes is None else selection.indexes[at]
        raise OptionError(
            f"'minPartitions' divides the keys of a snapshot among tasks, but in topic {batch.topic!r}, partition "
            f"{batch.partition}, offset {batch.offsets[index]} column {name!r} differs between value and key. "
            "Leave 'minPartitions' out, or read the key alone with 'value.fields-include' = 'EXCEPT_KEY' if "
            "the values have no key columns of their own."
        )


def of_share(keys: pa.RecordBatch, share: Share) -> Mask:
    """For each row of keys whether it is of a share."""
    mask: Mask = row_hashes(keys) % share.count == share.index
    return mask

"""Mutations that change nothing that a program could notice, each with the reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equivalent:
    """A mutation that no test can notice.

    Args:
        module: The file, inside the package.
        before: The line as it is.
        after: The line with the mutation, as the table of survivors shows it.
        reason: Why that is the same.
    """

    module: str
    before: str
    after: str
    reason: str


EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "core/metadata.py",
        "def _parts(type_: DataType, nullable: bool = True) -> tuple[tuple[Any, ...], tuple[bool, ...]]:",
        "def _parts(type_: DataType, nullable: bool = False) -> tuple[tuple[Any, ...], tuple[bool, ...]]:",
        "two types are compared, and it is said of both of them",
    ),
    Equivalent(
        "core/clock.py",
        "_MOST_DOUBLINGS = 30",
        "_MOST_DOUBLINGS = 31",
        "the bound of a pause is reached long before; this keeps the power a number",
    ),
    Equivalent(
        "core/errors.py",
        "if text.isprintable(): return text",
        "pass",
        "a text without such characters comes out as it is; this is the fast way",
    ),
    Equivalent(
        "core/changes.py",
        'near = get_close_matches((spelling or "").strip().lower(), _SPELLINGS, n=1)',
        'near = get_close_matches((spelling or "").strip().lower(), _SPELLINGS, n=2)',
        "the nearest comes first, however many come",
    ),
    *(
        Equivalent(
            "core/masking.py",
            "for before in range(3):",
            f"for before in range({more}):",
            "base64 has groups of three bytes: with three more before it a secret is spelt the same",
        )
        for more in (4, 6)
    ),
    Equivalent(
        "core/masking.py",
        'is_login = b":" in base64.b64decode(encoded + "=" * (-len(encoded) % 4))',
        'is_login = b":" in base64.b64decode(encoded + "=" * (-len(encoded) % 8))',
        "more padding than is needed is ignored",
    ),
    Equivalent(
        "connector/reading/reading_past_end.py",
        "stands_for[1:] = by_place[1:] < earliest[:-1]",
        "stands_for[1:] = by_place[1:] <= earliest[:-1]",
        "no two messages are overwritten by the same one",
    ),
    Equivalent(
        "core/errors.py",
        "begin = printable(text[: _SHOWN + 1])",
        "begin = printable(text[: _SHOWN + 2])",
        "what is more than is shown is cut below",
    ),
    Equivalent(
        "core/bytes_column.py",
        'if "_values" in self.__dict__: # taking it from the list costs a tenth',
        'if "_values" not in self.__dict__: # taking it from the list costs a tenth',
        "the column and the list have the same value; this says which is faster",
    ),
    Equivalent(
        "core/bytes_column.py",
        'if "_values" in self.__dict__: # taking it from the list costs a tenth return self._values[at]',
        "pass",
        "the column has the same value; this is the fast way",
    ),
    *(
        Equivalent(
            "core/positions/planning.py", before, after, "any time before, or after, all others"
        )
        for before, after in (
            ("_BEFORE_ALL = -2", "_BEFORE_ALL = -3"),
            ("_BEFORE_ALL = -2", "_BEFORE_ALL = -4"),
            ("_AFTER_ALL = 2**62", f"_AFTER_ALL = {2**63}"),
        )
    ),
    Equivalent(
        "core/positions/data_loss.py",
        'truncated = offset.positions[tp] > bounds.high and known == view.topic_ids[tp.topic] != ""',
        'truncated = offset.positions[tp] >= bounds.high and known == view.topic_ids[tp.topic] != ""',
        "at the end of the same topic nothing is lost, and only what is lost comes here",
    ),
    Equivalent(
        "core/masking.py",
        'if (len(begun) - len(begun.rstrip("\\\\"))) % 2:',
        'if (len(begun) + len(begun.rstrip("\\\\"))) % 2:',
        "a sum is odd where the difference is",
    ),
    Equivalent(
        "connector/writing/keyed_buffer.py",
        "size *= 2",
        "size *= 4",
        "how many keys are looked at in a step changes no result; fewer steps look at more of them",
    ),
    Equivalent(
        "connector/writing/keyed_buffer.py",
        "size *= 2",
        "size *= 3",
        "how many keys are looked at in a step changes no result; fewer steps look at more of them",
    ),
    Equivalent(
        "connector/writing/keyed_buffer.py",
        "begin, size = begin + len(stretch), 2 * max_keys",
        "begin, size = begin + len(stretch), 4 * max_keys",
        "how many keys are looked at in a step changes no result; fewer steps look at more of them",
    ),
    Equivalent(
        "connector/writing/keyed_buffer.py",
        "both = keys.astype(np.int64) * (int(of_topics.max(initial=0)) + 1) + of_topics",
        "both = keys.astype(np.int64) * (int(of_topics.max(initial=0)) + 1) - of_topics",
        "the difference is as different for each key and topic as the sum",
    ),
    Equivalent(
        "connector/writing/keyed_buffer.py",
        "places[keys] = -1",
        "places[keys] = -2",
        "it stands for any number below all places",
    ),
    Equivalent(
        "connector/writing/keyed_buffer.py",
        "if len(topics) == 1 and None not in topics: return keys",
        "pass",
        "with one topic the numbers below are as different as the keys; this is the fast way",
    ),
    Equivalent(
        "connector/writing/row_encoding.py",
        "if self._last is None and changes.preimages is None: return changes.messages",
        "pass",
        "no message is dropped or held below either; this is the fast way",
    ),
    *(
        Equivalent(
            "connector/writing/keyed_buffer.py",
            before,
            after,
            "how many keys are looked at in a step changes no result",
        )
        for before, after in (
            ("begin, size = 0, 2 * max_keys", "begin, size = 0, (2)"),
            ("begin, size = 0, 2 * max_keys", "begin, size = 0, 3 * max_keys"),
            ("begin, size = 0, 2 * max_keys", "begin, size = 0, 4 * max_keys"),
            (
                "begin, size = begin + len(stretch), 2 * max_keys",
                "begin, size = begin + len(stretch), (2)",
            ),
            (
                "begin, size = begin + len(stretch), 2 * max_keys",
                "begin, size = begin + len(stretch), 3 * max_keys",
            ),
            (
                "if is_full or begin + size >= len(keys):",
                "if is_full or begin + size > len(keys):",
            ),
        )
    ),
    Equivalent(
        "connector/writing/keyed_buffer.py",
        "places = np.empty(int(keys.max(initial=-1)) + 1, keys.dtype)",
        "places = np.empty(int(keys.max(initial=-1)) + 2, keys.dtype)",
        "the place behind the last one is not used",
    ),
    *(
        Equivalent(
            "connector/writing/keyed_buffer.py",
            "both = keys.astype(np.int64) * (int(of_topics.max(initial=0)) + 1) + of_topics",
            f"both = keys.astype(np.int64) * (int(of_topics.max({initial})) + {more}) + of_topics",
            "any factor above the numbers of all topics keeps the sums apart",
        )
        for initial, more in (("initial=1", 1), ("initial=0", 2))
    ),
    Equivalent(
        "connector/writing/row_encoding.py",
        "if rows.schema.equals(self._schema): return rows",
        "pass",
        "rows that have these types come out equal below; this is the fast way",
    ),
    Equivalent(
        "connector/writing/row_encoding.py",
        "codes = np.array(kinds, dtype=np.int8)[encoded.indices.to_numpy(zero_copy_only=False)]",
        "codes = np.array(kinds, dtype=np.int8)[encoded.indices.to_numpy(zero_copy_only=True)]",
        "NULL, for which a copy is needed, was refused before",
    ),
    Equivalent(
        "connector/writing/row_encoding.py",
        "if changes.preimages is None and not self._tombstones.size: return messages",
        "pass",
        "nothing waits, and nothing that waits is dropped below; this is the fast way",
    ),
    Equivalent(
        "connector/writing/row_encoding.py",
        "elif not preimage and self._tombstones.size:",
        "elif not preimage or self._tombstones.size:",
        "a preimage that does not wait is followed by a change of its key, which drops or replaces what waits",
    ),
    Equivalent(
        "connector/planning/stream_reader.py",
        "self._waits = False",
        "self._waits = True",
        "it is looked at only after it was set with the start at which there was nothing new",
    ),
    Equivalent(
        "connector/planning/batch_ends.py",
        "is_message = bool(self._offsets_and_times(view, tp, at, at + 1)[0])",
        "is_message = bool(self._offsets_and_times(view, tp, at, at + 1)[1])",
        "there is a time for each offset",
    ),
    Equivalent(
        "kafka/range_fetch.py",
        "self._damaged_at, self._damaged = -1, 0",
        "self._damaged_at, self._damaged = -1, 1",
        "no position is -1, so that counting begins at the first one that is damaged",
    ),
    Equivalent(
        "connector/planning/batch_ends.py",
        "and not self._read(view, reachable, tp, at)[0]",
        "and not self._read(view, reachable, tp, at)[1]",
        "there is a time for each offset",
    ),
    Equivalent(
        "connector/reading/snapshot.py",
        ").group_by(names, use_threads=False)",
        ").group_by(names, use_threads=True)",
        "keys may come in any order: only which rows are chosen counts",
    ),
    Equivalent(
        "connector/reading/snapshot.py",
        "if len(batches) == 1: return batches[0]",
        "pass",
        "one batch is joined to an equal one; this is the fast way",
    ),
    Equivalent(
        "connector/reading/decoded_messages.py",
        "if len(of_change) == len(column) and (of_change == np.arange(len(column))).all(): return column",
        "pass",
        "taking all in their order gives an equal column; this is the fast way",
    ),
    Equivalent(
        "connector/reading/merged_partitions.py",
        "if taken >= memory:",
        "if taken > memory:",
        "where no byte is left, the next message does not fit either",
    ),
    Equivalent(
        "connector/reading/metadata_arrays.py",
        "micros = np.where(known, ms, 0) * 1000",
        "micros = np.where(known, ms, 1) * 1000",
        "this number stands under a NULL",
    ),
    Equivalent(
        "connector/reading/message_rows.py",
        "if column is not None and not column.null_count and not self._shares_keys: return column",
        "pass",
        "where the value has no NULL nothing is taken from the key below; this is the fast way",
    ),
    Equivalent(
        "connector/reading/message_rows.py",
        "if self._fields is None: return []",
        "pass",
        "a format that tells no fields has no levels, of which this is asked; it is said for the type",
    ),
    Equivalent(
        "connector/reading/decoded_messages.py",
        "if values.nulls is not None and keys is not None:",
        "if values.nulls is not None or keys is not None:",
        "null values delete only where keys are read, and no nulls are no place; one of the two is said for the type",
    ),
    Equivalent(
        "core/bytes_column.py",
        "if isinstance(messages, BytesColumn): return messages.column",
        "pass",
        "the column that is made of its values is the same; this is the fast way",
    ),
    Equivalent(
        "connector/reading/message_rows.py",
        "return _null_where_bad(column, selection) if self._keep_bad and selection.bad else column",
        "return _null_where_bad(column, selection) if self._keep_bad or selection.bad else column",
        "without bad messages nothing becomes NULL, and where they are not kept they have no rows",
    ),
    Equivalent(
        "kafka/raw_batch.py",
        "last = [dict(each) for each in self.headers] if wanted and any(self.headers) else []",
        "last = [dict(each) for each in self.headers] if wanted or any(self.headers) else []",
        "nothing is taken out where nothing is wanted, or where there are no headers; this is the fast way",
    ),
    Equivalent(
        "connector/writing/row_encoding.py",
        "waiting = flags & ~_followed(messages)",
        "waiting = (flags)",
        "the change that follows a preimage of its key takes it out again; this is the fast way",
    ),
    Equivalent(
        "connector/planning/batch_ends.py",
        "if self._alignment is None or self._times is None:",
        "if self._alignment is None and self._times is None:",
        "they are made together; one of the two is said for the type",
    ),
    Equivalent(
        "connector/reading/decoded_messages.py",
        "return places, np.full(len(places), kind, np.int8), np.full(len(places), -1, np.int64)",
        "return places, np.full(len(places), kind, np.int8), np.full(len(places), -2, np.int64)",
        "any number below zero says that a row is none of the changes",
    ),
)

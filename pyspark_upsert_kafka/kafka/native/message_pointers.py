"""Messages that librdkafka gives as pointers: what they hold as columns, without an object of Python for each.

What is read is the public struct ``rd_kafka_message_t``. All of a chunk are read at once: their fields by NumPy, which sees
all memory of the process as one array, and their bytes by Arrow, which copies them while they are there.
"""

from __future__ import annotations

import ctypes
import importlib
from collections import deque
from collections.abc import Sequence
from ctypes import c_int64, c_size_t, c_void_p
from functools import cache, cached_property, partial
from itertools import chain, repeat
from operator import methodcaller
from typing import Any, NamedTuple

import confluent_kafka as ck
import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.kafka.native.library import Message, library

_ADDRESSES = 1 << 56
"""No 64-bit system has more for a process."""

_POINTER = ctypes.sizeof(c_void_p)

_NOT_ASKED = -1
"""No type of a timestamp."""

_MESSAGE = np.dtype(Message)  # made once: Ctrl-C while it is made gives one of objects

_call = methodcaller("__call__")


class _AllMemory:
    """The memory of this process as messages: one begins at each address that a compiler may give to one."""

    __array_interface__ = {  # noqa: RUF012 - read by NumPy alone
        "version": 3,
        "shape": (_ADDRESSES // _POINTER,),
        "strides": (_POINTER,),
        "typestr": f"|V{ctypes.sizeof(Message)}",
        "data": (_POINTER, True),
    }


class Timestamps(NamedTuple):
    """The timestamps of messages: their types, and milliseconds since the epoch."""

    types: Any
    ms: Any


class MessagePointers:
    """Messages that were taken out of a queue, to be read until they are freed.

    Each is freed once, whatever is raised meanwhile and wherever: how many there are is kept in the same step of the
    interpreter that takes them, and forgotten in the one that frees them. Ctrl-C comes between two steps.

    Args:
        most: The most messages that are taken at once.
    """

    def __init__(self, most: int) -> None:
        self._pointers = np.zeros(most, np.uintp)
        self._counts: list[int] = []
        self._containers: list[int] = []

    def take(self, queue: int, count: int, timeout_s: float) -> None:
        """Takes messages out of a queue, waiting for a number of them.

        Raises:
            KafkaException: The queue gives none.
        """
        self.free()
        found = _library()
        arguments = queue, int(timeout_s * 1000), self._pointers.ctypes.data, count
        taken = map(found.rd_kafka_consume_batch_queue, *((each,) for each in arguments))
        self._counts.extend(taken)
        if self._counts[0] < 0:
            raise ck.KafkaException(ck.KafkaError(found.rd_kafka_last_error()))

    def free(self) -> None:
        """Frees the messages, if there are any."""
        if not self._counts:
            return
        pointers = self._pointers[: max(0, self._counts[0])]
        together = _free_together()
        if together is None:
            steps = map(_functions().rd_kafka_message_destroy, pointers.tolist())
        else:
            steps = map(
                _call, (partial(together, self._contained(pointers)), self._containers.clear)
            )
        deque(chain(steps, map(_call, (self._counts.clear,))), maxlen=0)

    def _contained(self, pointers: Any) -> int:
        """Where a count stands, and behind it the pointers, in memory that librdkafka frees with the messages."""
        if not self._containers:
            size = _POINTER * (1 + len(self._pointers))
            self._containers.extend(map(_functions().rd_kafka_mem_malloc, (None,), (size,)))
        container = self._containers[0]
        c_size_t.from_address(container).value = len(pointers)
        ctypes.memmove(container + _POINTER, pointers.ctypes.data, pointers.nbytes)
        return container

    @property
    def pointers(self) -> Any:
        """Where the messages are."""
        return self._pointers[: self._counts[0]]


def fields_of(pointers: Any) -> Any:
    """The fields of the messages at these places, as an array of ``rd_kafka_message_t``."""
    return _all_memory()[pointers.astype(np.intp) // _POINTER - 1].view(_MESSAGE)


def bytes_at(places: Any, sizes: Any) -> BytesColumn:
    """A copy of the bytes at these places of memory; at 0 is no value.

    Arrow gathers them: with the gaps before them they make an array, of which every second element is taken.
    """
    count, nulls = len(places), places == 0
    lengths = sizes.astype(np.int64)
    used = places[lengths > 0]
    base = int(used.min()) if used.size else 0
    begins = np.where(lengths > 0, places.astype(np.int64) - base, 0)
    size = int((begins + lengths).max(initial=0))
    bounds = np.zeros(2 * count + 2, np.int64)
    bounds[1:-1:2], bounds[2::2] = begins, begins + lengths
    # From the first and the last bound Arrow guesses how much room the taken ones need.
    bounds[-1] = min(size, 2 * int(lengths.sum()))
    taken = pa.array(np.arange(1, 2 * count, 2), mask=nulls if nulls.any() else None)
    if not size:
        return BytesColumn(_binary(bounds, pa.py_buffer(b"")).take(taken))
    # What points into messages has no name, so that nothing holds it when they are freed.
    return BytesColumn(_binary(bounds, pa.foreign_buffer(base, size)).take(taken))


def _binary(bounds: Any, data: pa.Buffer) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(bounds), data]
    return pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)


def timestamps_of(pointers: Any) -> Timestamps:
    """The timestamps of messages, each of which librdkafka is asked for.

    A loop of NumPy's asks, which ends at a timestamp of 0. Those behind it are asked for one by one: to begin the loop
    anew behind each would cost far more where all are 0.
    """
    count = len(pointers)
    types, ms = np.full(count, _NOT_ASKED, np.int32), np.zeros(count, np.int64)
    types_at = _places_of(types)
    call_on_pairs(_timestamp(), pointers, types_at, ms)
    left = types == _NOT_ASKED
    if left.any():
        ask = _functions().rd_kafka_message_timestamp
        ms[left] = [*map(ask, pointers[left].tolist(), types_at[left].tolist())]
    return Timestamps(types.astype(np.int64), ms)


class HeaderValues:
    """Finds headers of messages. The places for what librdkafka finds are made once, and so are the arguments that name them.

    Args:
        most: The most messages that are looked at once.
    """

    def __init__(self, most: int) -> None:
        # Messages, their lists of headers, and of one header its values and sizes.
        self._found = np.zeros((4, most), np.uintp)

    @cached_property
    def _places(self) -> list[list[Any]]:
        """The place of each number, as an argument: ctypes takes longer to make one than to call a function with it."""
        return [[*map(c_void_p.from_param, _places_of(each).tolist())] for each in self._found]

    @cached_property
    def _numbers(self) -> list[list[c_void_p]]:
        """What is at the places of messages and of lists when a function is called with it."""
        return [
            [*map(c_void_p.from_address, _places_of(each).tolist())] for each in self._found[:2]
        ]

    def last(self, pointers: Any, names: Sequence[str]) -> dict[str, BytesColumn]:
        """The value of each of these headers, of several with a name that of the last; None where a message has none.

        A header that no message has, or that has no value in any, is left out. Most topics have messages without headers: a loop
        of NumPy's asks for them, which ends at the first message that has any. From there on each is asked.
        """
        count, functions = len(pointers), _functions()
        messages, lists = self._found[:2, :count]
        messages[:], codes = pointers, np.zeros(count, np.int64)
        lists.fill(0)
        call_on_pairs(_headers(), messages, _places_of(lists), codes)
        left = slice(int(np.count_nonzero(codes)), count)
        if left.start < count:
            of_left = self._numbers[0][left], self._places[1][left]
            deque(map(functions.rd_kafka_message_headers, *of_left), maxlen=0)
        having = np.flatnonzero(lists)
        found, some = {}, slice(having.size)
        lists[some] = lists[having]
        for name in names if having.size else ():
            values = self._found[2:, some]
            values.fill(0)
            asked = self._numbers[1][some], repeat(name.encode()), *self._places[2:]
            deque(map(functions.rd_kafka_header_get_last, *asked), maxlen=0)
            if values.any():
                of_all = np.zeros((2, count), np.uintp)
                of_all[:, having] = values
                found[name] = bytes_at(*of_all)
        return found


def _places_of(numbers: Any) -> Any:
    """Where each number of an array is in memory."""
    return np.arange(len(numbers), dtype=np.uintp) * numbers.itemsize + numbers.ctypes.data


@cache
def can_be_read() -> bool:
    """Whether all that is needed is there, and does what it should: tried on memory that librdkafka gives."""
    if library() is None or _POINTER != 8 or ctypes.sizeof(c_size_t) != 8:
        return False
    try:
        return _reads_memory() and calls_on_pairs()
    except (AttributeError, ImportError, IndexError, ValueError):
        return False


def _reads_memory() -> bool:
    functions, seen = _functions(), Message(3, 5, 7, 11, 13, 17, 19, 23, 29)
    size = ctypes.sizeof(Message)
    place = functions.rd_kafka_mem_malloc(None, size)
    try:
        ctypes.memmove(place, ctypes.addressof(seen), size)
        fields = fields_of(np.array([place, place], np.uintp))
        copied = bytes_at(np.array([place], np.uintp), np.array([size], np.uintp))
    finally:
        functions.rd_kafka_mem_free(None, place)
    expected = tuple(getattr(seen, name) for name, _ in Message._fields_)
    return bool(fields.tolist() == [expected] * 2 and copied[0] == bytes(seen))


@cache
def _library() -> Any:
    """The library, whose functions let other threads of Python run."""
    return library()


@cache
def _functions() -> Any:
    """The same for functions that end at once, so that other threads of Python need not be let in."""
    found = ctypes.PyDLL(ck.cimpl.__file__)
    found.rd_kafka_mem_malloc.restype = c_void_p
    found.rd_kafka_mem_malloc.argtypes = c_void_p, c_size_t
    found.rd_kafka_mem_free.restype = None
    found.rd_kafka_mem_free.argtypes = c_void_p, c_void_p
    found.rd_kafka_message_destroy.restype = None
    found.rd_kafka_message_destroy.argtypes = (c_void_p,)
    found.rd_kafka_message_timestamp.restype = c_int64
    found.rd_kafka_message_timestamp.argtypes = c_void_p, c_void_p
    # What they find is seen in the places that they are given. Their arguments are pointers already: nothing converts numbers.
    found.rd_kafka_message_headers.restype = None
    found.rd_kafka_header_get_last.restype = None
    return found


@cache
def _free_together() -> Any | None:
    """Librdkafka's function that frees many messages (2.15 and newer); None = it is not there, or takes something else.

    It takes a container that users of librdkafka do not see into: a count, and the pointers. That it is so here, the
    functions tell that are to look into one.
    """
    found = _functions()
    try:
        count, get = found.rd_kafka_messages_count, found.rd_kafka_messages_get
        destroy = found.rd_kafka_messages_destroy
    except AttributeError:
        return None
    count.restype, count.argtypes = c_size_t, (c_void_p,)
    get.restype, get.argtypes = c_void_p, (c_void_p, c_size_t)
    destroy.restype, destroy.argtypes = None, (c_void_p,)
    tried = [2, 1 << 40, 1 << 41]
    container = found.rd_kafka_mem_malloc(None, _POINTER * len(tried))
    ctypes.memmove(container, (c_size_t * len(tried))(*tried), _POINTER * len(tried))
    seen = [count(container), get(container, 0), get(container, 1)]
    found.rd_kafka_mem_free(None, container)
    return destroy if seen == tried else None


@cache
def _timestamp() -> int:
    """The address of the function that tells a message's timestamp."""
    return ctypes.cast(_functions().rd_kafka_message_timestamp, c_void_p).value or 0


@cache
def _headers() -> int:
    """The address of the function that finds a message's headers: it gives 0 for one that has any, and sets where they are."""
    return ctypes.cast(_functions().rd_kafka_message_headers, c_void_p).value or 0


@cache
def _all_memory() -> Any:
    return np.asarray(_AllMemory())


_OO_O = 21
"""The place of ``PyUFunc_OO_O`` in the table of NumPy's public C interface, which never changes."""


def call_on_pairs(function: int, first: Any, second: Any, results: Any) -> None:
    """Calls a function of two pointers, none of which is 0, for each pair; it ends where the function gives 0.

    Args:
        function: Its address. It gives a pointer, or a number as large as one, and ends at once.
        first: Its first arguments.
        second: Its second ones.
        results: What it gives; zeros before.
    """
    places = (c_void_p * 3)(*(each.ctypes.data for each in (first, second, results)))
    counts, steps = (c_int64 * 1)(len(first)), (c_int64 * 3)(*[_POINTER] * 3)
    _loop()(places, counts, steps, function)


def calls_on_pairs() -> bool:
    """Whether that works here: tried with Python's own addition of two objects.

    Raises:
        AttributeError: NumPy has no such loop.
        ImportError: The same.
    """
    numbers = 1 << 70, 1 << 71
    first, second = (np.array([id(number)], np.uintp) for number in numbers)
    sums = np.zeros(1, np.int64)
    add = ctypes.cast(ctypes.pythonapi.PyNumber_Add, c_void_p).value or 0
    call_on_pairs(add, first, second, sums)
    found = ctypes.cast(int(sums[0]), ctypes.py_object)
    is_sum = bool(found.value == sum(numbers))
    ctypes.pythonapi.Py_DecRef(found)
    return is_sum


@cache
def _loop() -> Any:
    try:
        module: Any = importlib.import_module("numpy._core._multiarray_umath")
    except ImportError:  # NumPy 1
        module = importlib.import_module("numpy.core._multiarray_umath")
    capsule = module._UFUNC_API  # noqa: SLF001 - how NumPy's own header finds the table
    kind = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_void_p)
    table = kind(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None)
    entry = c_void_p.from_address(table + _OO_O * _POINTER).value or 0
    return ctypes.PYFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_void_p)(entry)

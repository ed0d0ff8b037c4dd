"""A function of C called for each pair of pointers, by NumPy's loop for functions of two objects."""

from __future__ import annotations

import ctypes
import importlib
from ctypes import c_int64, c_void_p
from functools import cache
from typing import Any

import numpy as np

_OO_O = 21
"""The place of ``PyUFunc_OO_O`` in the table of NumPy's public C interface, which never changes."""

_POINTER = ctypes.sizeof(c_void_p)


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

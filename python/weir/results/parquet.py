"""What the footer of a Parquet file promises, read before anything is unpacked.

The footer is Thrift's compact protocol (`parquet.thrift` of apache/parquet-format). Results may
come from others, and a table of a few kilobytes can unpack to more than the machine's memory.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from weir.base.errors import InputError

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
"""The length of the footer, and the magic number."""
_LARGEST_FOOTER = 16 << 20
_VALUE_BYTES = 8
"""What a value takes in memory, at most and but for texts."""
_HARMLESS_BYTES = 256 << 20
_MOST_INFLATION = 500
"""Tables of real runs unpack to 5 to 80 times their size."""

_ROWS, _ROW_GROUPS, _COLUMNS, _GROUP_BYTES = 3, 4, 1, 2
"""Numbers of fields: two of `FileMetaData`, two of `RowGroup`."""


def unpacked_bytes(path: Path) -> int:
    """Returns what the table at `path` unpacks to.

    Raises:
        InputError: it is none, or it unpacks to far more than a table of its size may.
    """
    size = path.stat().st_size
    try:
        inflated = _inflated_bytes(_footer(path, size))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise InputError(f"{path}: damaged: no table in Parquet") from None
    if inflated > max(_HARMLESS_BYTES, _MOST_INFLATION * size):
        raise InputError(
            f"{path}: damaged: {size} bytes that unpack to {inflated}, more than "
            f"{_MOST_INFLATION} times as much"
        )
    return inflated


def _footer(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read(_TAIL_BYTES)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or length > min(_LARGEST_FOOTER, size - _TAIL_BYTES):
            raise ValueError(path)
        file.seek(-_TAIL_BYTES - length, os.SEEK_END)
        return file.read(length)


def _inflated_bytes(footer: bytes) -> int:
    """The larger of what pages unpack to and of what their values take in memory."""
    described = _Compact(footer).struct()
    groups = described.get(_ROW_GROUPS, [])
    columns = max((len(group[_COLUMNS]) for group in groups), default=0)
    pages = sum(int(group[_GROUP_BYTES]) for group in groups)
    return max(pages, int(described[_ROWS]) * columns * _VALUE_BYTES)


class _Compact:
    """A reader of Thrift's compact protocol: structs as dictionaries by the numbers of fields."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self) -> dict[int, Any]:
        """The fields up to the next stop."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            delta, kind = head >> 4, head & 15
            number = number + delta if delta else self._signed()
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE, _I8):
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return self._signed()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind in (_LIST, _SET):
            return self._list()
        if kind == _STRUCT:
            return self.struct()
        raise ValueError(kind)

    def _list(self) -> list[Any]:
        head = self._byte()
        length = head >> 4 if head >> 4 != _LONG_LIST else self._unsigned()
        if length > len(self._data):
            raise ValueError(length)
        return [self._value(head & 15) for _ in range(length)]

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            if shift > _LONGEST_SHIFT:
                raise ValueError(shift)
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, length: int) -> bytes:
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise ValueError(length)
        return self._data[start : self._at]


_TRUE, _FALSE, _I8, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET = range(1, 11)
_STRUCT = 12
"""Types of the protocol; Parquet has no maps (11)."""
_LONGEST_SHIFT = 63
_LONG_LIST = 15
"""In place of a list's length: it comes behind."""

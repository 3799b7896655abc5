"""Quantities with units, as arguments of functions and options give them."""

from __future__ import annotations

from typing import Literal

from weir._native import parse_quantity
from weir.base.errors import InputError


def quantity(kind: Literal["time", "rate", "size"], name: str, text: str) -> float:
    """Returns the value of an argument in seconds, bits per second or bytes.

    Raises:
        InputError: it is no such quantity; the message names the argument.
    """
    try:
        return parse_quantity(kind, text)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error

"""The compiled core: scenarios in, tables out. Use the package ``weir`` instead."""

from typing import Literal

__all__ = ["parse_quantity", "version"]

def version() -> str:
    """Return the version of the compiled core."""

def parse_quantity(kind: Literal["time", "rate", "size", "ratio"], text: str) -> float:
    """Read a quantity: seconds, bits per second, bytes, or a fraction.

    Raises ``ValueError`` naming the value and what is allowed.
    """

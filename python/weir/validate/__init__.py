"""The same scenarios in the simulator and in the Linux kernel, beside each other and scored.

>>> found = weir.validate.validate("tests/truth", cases=["10m-q34-*"])  # doctest: +SKIP
>>> [row for row in found.rows if row["holds"] is False]  # doctest: +SKIP
"""

from __future__ import annotations

from weir.validate.outcome import FILE, SERIES, Validation
from weir.validate.recorded import SEEDS, validate

__all__ = ["FILE", "SEEDS", "SERIES", "Validation", "validate"]

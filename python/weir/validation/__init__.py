"""The same scenarios in the simulator and in the Linux kernel, compared and scored.

>>> found = weir.validation.validate("tests/truth", cases=["10m-q34-*"])  # doctest: +SKIP
>>> found = weir.validation.validate_kernel(virtual=True, cases=["10m-*-reno"])  # doctest: +SKIP
>>> [row for row in found.rows if row["holds"] is False]  # doctest: +SKIP
"""

from __future__ import annotations

from weir.recordings.outcome import FILE, SERIES, Validation
from weir.recordings.recorded import SEEDS, validate
from weir.validation.cases import SIZES, SMALL
from weir.validation.kernel import REPEAT, comparison, random_comparison, validate_kernel

__all__ = [
    "FILE",
    "REPEAT",
    "SEEDS",
    "SERIES",
    "SIZES",
    "SMALL",
    "Validation",
    "comparison",
    "random_comparison",
    "validate",
    "validate_kernel",
]

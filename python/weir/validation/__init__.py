"""The same scenarios in the simulator and in the Linux kernel, compared and scored.

>>> found = weir.validation.validate("tests/truth", cases=["10m-q34-*"])  # doctest: +SKIP
>>> found = weir.validation.validate_kernel(virtual=True, cases=["10m-*-reno"])  # doctest: +SKIP
>>> [row for row in found.rows if row["holds"] is False]  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weir.base import lazy

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # a checker that saw this would let any name pass
    # These bring the libraries of statistics along, and who asks for kinds of paths needs none.
    _HOMES = {
        "FILE": "weir.recordings.outcome",
        "REPEAT": "weir.validation.kernel",
        "SEEDS": "weir.recordings.recorded",
        "SERIES": "weir.recordings.outcome",
        "SIZES": "weir.validation.cases",
        "SMALL": "weir.validation.cases",
        "Validation": "weir.recordings.outcome",
        "comparison": "weir.validation.kernel",
        "random_comparison": "weir.validation.kernel",
        "validate": "weir.recordings.recorded",
        "validate_kernel": "weir.validation.kernel",
    }
    __getattr__, __dir__ = lazy.names(__name__, _HOMES)

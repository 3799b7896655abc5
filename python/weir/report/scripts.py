"""The scripts of a report that draw its figures: Vega, Vega-Lite and vega-embed in one file.

`WEIR_BLESS=1 pytest tests/python/test_report_scripts.py` bundles them again.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib.resources import files

BUNDLE = files("weir.report") / "assets" / "vega.min.js.gz"


@lru_cache(maxsize=1)
def vega() -> str:
    """Defines `window.vegaEmbed`."""
    return gzip.decompress(BUNDLE.read_bytes()).decode()


__all__ = ["BUNDLE", "vega"]

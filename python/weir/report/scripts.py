"""The scripts of a report that draw its figures: Vega, Vega-Lite and vega-embed in one file.

`WEIR_BLESS=1 pytest tests/python/test_report_scripts.py` bundles them again.
"""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from importlib.resources import files

BUNDLE = files("weir.report") / "assets" / "vega.min.js.gz"


@lru_cache(maxsize=1)
def packed_vega() -> str:
    """A script that defines `window.vegaEmbed`, in base64 of gzip: half of its size."""
    return b64encode(BUNDLE.read_bytes()).decode()


__all__ = ["BUNDLE", "packed_vega"]

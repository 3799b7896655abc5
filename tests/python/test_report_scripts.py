"""The packed scripts of a report are those of the converter that draws the pictures of files."""

from __future__ import annotations

import gzip
import os
from base64 import b64decode
from pathlib import Path

import vl_convert

from weir.report import scripts


def test_they_are_what_the_converter_bundles() -> None:
    bundled = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if "WEIR_BLESS" in os.environ:
        packed = gzip.compress(bundled.encode(), 9, mtime=0)
        Path(str(scripts.BUNDLE)).write_bytes(packed)
    assert gzip.decompress(b64decode(scripts.packed_vega())).decode() == bundled

"""The schema of Vega-Lite, which Altair carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

_KINDS: Mapping[str, type[alt.VegaLiteSchema]] = {
    "layer": alt.TopLevelLayerSpec,
    "hconcat": alt.TopLevelHConcatSpec,
    "vconcat": alt.TopLevelVConcatSpec,
    "concat": alt.TopLevelConcatSpec,
    "mark": alt.TopLevelUnitSpec,
}


def check(spec: Mapping[str, Any]) -> None:
    """Fails where a picture is none.

    Raises:
        jsonschema.ValidationError: what is wrong with it.
    """
    kind = next(kind for kind in _KINDS if kind in spec)
    _KINDS[kind].validate(dict(spec))

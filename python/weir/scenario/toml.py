"""A checked scenario as the text of a scenario file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def toml(fields: Mapping[str, Any]) -> str:
    """A scenario file with all keys of a checked scenario, and all that its files contain."""
    present = {key: value for key, value in fields.items() if value is not None}
    return "".join(f"{json.dumps(key)} = {_value(value)}\n" for key, value in present.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        parts = (f"{json.dumps(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return "{ " + ", ".join(parts) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # `inf`, `-inf` and `nan` are TOML's words too
    if value is None:
        raise TypeError("a list of a scenario has values only: TOML has no null")
    # TOML allows the escapes of JSON, and U+007F only as one of them.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

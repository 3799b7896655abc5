"""The manifest of a result directory, checked against its schema before anything uses it.

Results may be damaged, or forged. The check knows the keywords of JSON Schema
that `schemas/manifest.json` uses; a complete validator would be a dependency for this one file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weir.base.errors import InputError
from weir.base.plain import plain
from weir.results import schemas

FILE = "manifest.json"
STUDY = "study.json"
VALIDATION = "validation.json"
RADIO = "radio-validation.json"
CONFORM = "conform.json"
"""What a study, a validation or a conformance check keeps next to the tables, for its report."""
SCHEMA = 1
"""Version of the layout and columns of a result directory."""

KEYWORDS = frozenset(
    {
        *("$schema", "$id", "title", "type", "const", "pattern", "minimum"),
        *("properties", "required", "additionalProperties", "items", "minItems"),
    }
)
"""What the check knows of JSON Schema."""

_MOST_BYTES = 1 << 30
"""100,000 cases, the most of a plan, have about a third."""
_LONGEST_VALUE = 40
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def read(folder: Path) -> dict[str, Any]:
    """The manifest in `folder`.

    Raises:
        InputError: there is none, a newer version wrote it, or it is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"{folder}: no results here (a result directory has a {FILE})")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: damaged: longer than {_MOST_BYTES} bytes")
        manifest = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(manifest, ensure_ascii=False, allow_nan=False).encode()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except RecursionError:
        raise InputError(f"{path}: damaged: nested too deep") from None
    except ValueError as error:
        raise InputError(f"{path}: damaged: {error}") from None
    version = manifest.get("schema") if isinstance(manifest, dict) else None
    if isinstance(version, int) and version > SCHEMA:
        raise InputError(
            f"{folder}: written in schema {version}, this version reads up to {SCHEMA}"
        )
    for violation in violations(manifest, schemas.read("manifest"), ""):
        raise InputError(f"{path}: damaged: {plain(violation)}")
    return dict(manifest)


def violations(value: Any, schema: Mapping[str, Any], key: str) -> Iterator[str]:
    """What about a value does not fit its schema, each with its key."""
    name = key or "the manifest"
    types = schema.get("type", list(_TYPES))
    types = [types] if isinstance(types, str) else types
    if not any(_is_a(value, wanted) for wanted in types):
        yield f"{name} is {_short(value)}, not of type {' or '.join(types)}"
        return
    if "const" in schema and repr(value) != repr(schema["const"]):  # in Python, True is 1
        yield f"{name} is {_short(value)}, not {schema['const']}"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{name} is {_short(value)}, which does not match {schema['pattern']}"
    if _is_a(value, "number") and value < schema.get("minimum", value):
        yield f"{name} is {_short(value)}, less than {schema['minimum']}"
    if isinstance(value, dict):
        yield from _of_object(value, schema, key)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{name} has less than {schema['minItems']} entries"
        for index, item in enumerate(value):
            yield from violations(item, schema.get("items", {}), f"{key}[{index}]")


def _of_object(value: dict[str, Any], schema: Mapping[str, Any], key: str) -> Iterator[str]:
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", {})
    for name in schema.get("required", []):
        if name not in value:
            yield f"{key or 'the manifest'} lacks '{name}'"
    for name, item in value.items():
        inner = f"{key}.{name}" if key else name
        if name in known or others is not False:
            yield from violations(item, known.get(name, others), inner)
        else:
            yield f"{inner} is unknown"


def _is_a(value: Any, wanted: str) -> bool:
    # In Python truth values are integers, in JSON they are not.
    is_truth = isinstance(value, bool)
    return isinstance(value, _TYPES[wanted]) and is_truth == (wanted == "boolean")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"

"""The folder of what can be made again, below the user's cache directory."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Weir's own folder there."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "weir"

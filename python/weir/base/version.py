"""Which Weir this is: version, commit and features of the compiled core."""

from __future__ import annotations

from typing import Any

from weir import _native


def described() -> str:
    """In words, as `weir --version` prints it."""
    commit, features = _native.build()
    details = [f"commit {commit}"] if commit else []
    details += [f"with {', '.join(features)}"] if features else []
    return f"{_native.version()} ({', '.join(details)})" if details else _native.version()


def build() -> dict[str, Any]:
    """As manifests have it, next to the version."""
    commit, features = _native.build()
    return {"commit": commit, "features": features}

"""Guest kernels that have been built: where they are kept, and which there are."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.base import cache
from weir.base.errors import InputError
from weir.kernel import recipe
from weir.kernel.recipe import KernelError

BINARY = "linux"
CONFIG = "config"
RECORD = "build.json"

CHOICE = "WEIR_GUEST_KERNEL"
"""Environment variable with the version of the guest kernel, as `--kernel` has it."""

HINT = "`weir stack kernel` makes it, once, in 5 to 15 minutes"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A guest kernel on disk."""

    path: Path
    version: str
    recipe: str
    record: dict[str, Any]

    @property
    def binary(self) -> Path:
        """What is run."""
        return self.path / BINARY

    def is_of(self, series: str) -> bool:
        """Whether it is of this version, or of a series that begins so: 6.1 is not 6.12."""
        return f"{self.version}.".startswith(f"{series}.")

    @property
    def is_current(self) -> bool:
        """Whether it was made by the recipe of this version of Weir."""
        return self.recipe == recipe.digest()

    @property
    def has_virtual_tsc(self) -> bool:
        """Whether it was made by the other one, for processor counters in virtual time."""
        return self.recipe == recipe.digest(virtual_tsc=True)


def home() -> Path:
    """The folder of all guest kernels, below the user's cache directory."""
    return cache.home() / "kernel"


def kernels() -> list[Kernel]:
    """Every guest kernel that has been built to the end, the newest version last."""
    records = home().glob(f"*/{RECORD}") if home().is_dir() else []
    found = [_read(path.parent) for path in records if not path.parent.name.startswith(".")]
    return sorted(filter(None, found), key=lambda kernel: recipe.version_key(kernel.version))


def default(*, virtual_tsc: bool = False) -> Kernel | None:
    """The one to run: the newest of the default series that this version's recipe made.

    Without one of that series it is the newest of all. The environment variable `CHOICE` names
    another version or series. With `virtual_tsc` it has processor counters in virtual time.
    """
    series = chosen()
    current = _made_by(recipe.digest(virtual_tsc=virtual_tsc))
    usual = [kernel for kernel in current if kernel.is_of(series or recipe.DEFAULT_SERIES)]
    found = usual or ([] if series else current)
    return found[-1] if found else None


def chosen() -> str:
    """The version or series that was chosen; empty if none was."""
    return os.environ.get(CHOICE, "")


def choose(version: str, *, virtual_tsc: bool = False) -> None:
    """Makes a version or series, as `6.12`, the default of this process and its children.

    Raises:
        InputError: it is no version.
        KernelError: there is no such kernel; it says how to get one.
    """
    if not re.fullmatch(r"\d+(\.\d+)*", version):
        raise InputError(f"--kernel {version}: allowed is a version or series, as in 6.12")
    os.environ[CHOICE] = version
    needed(virtual_tsc=virtual_tsc)


def needed(*, virtual_tsc: bool = False) -> Kernel:
    """The same.

    Raises:
        KernelError: there is none; it says how to get one.
    """
    kernel = default(virtual_tsc=virtual_tsc)
    if kernel is not None:
        return kernel
    series, option = chosen(), " --virtual-tsc" if virtual_tsc else ""
    made = _made_by(recipe.digest(virtual_tsc=virtual_tsc))
    there = ", ".join(kernel.version for kernel in made)
    if series and there:
        raise KernelError(
            f"--kernel {series}: no such guest kernel; there are: {there}. `weir stack kernel"
            f" {series}{option}` builds another"
        )
    if virtual_tsc:
        raise KernelError(
            "--virtual-tsc: it needs a guest kernel of its own. `weir stack kernel --virtual-tsc` "
            "makes it, once, in 5 to 15 minutes"
        )
    older = " (those there were made for another version of Weir)" if kernels() else ""
    raise KernelError(
        f"there is no guest kernel in {home()}{older}: {HINT}; the worlds sim and udp work without"
    )


def _made_by(digest: str) -> list[Kernel]:
    return [kernel for kernel in kernels() if kernel.recipe == digest]


def _read(path: Path) -> Kernel | None:
    try:
        record = json.loads((path / RECORD).read_text(encoding="utf-8"))
        kernel = Kernel(path, str(record["version"]), str(record["recipe"]), record)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kernel if os.access(kernel.binary, os.X_OK) else None

"""Programs of contenders that no package has: built once, from the registries, in the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from weir.base import cache
from weir.base.errors import InputError, WeirError
from weir.base.options import Option
from weir.contenders.catalogue import bin_folder, find, names
from weir.contenders.definition import Definition

DRIVERS = Path(__file__).parent / "drivers"
"""Our programs over libraries, one folder per contender."""

_LAST_LINES = 3

Say = Callable[[str], None]


class BuildError(WeirError):
    """A contender could not be built."""


def buildable() -> list[str]:
    """The contenders that must be built."""
    return [name for name in names() if find(name).build is not None]


def build(
    name: str,
    say: Say,
    *,
    version: Annotated[
        str | None, Option("Version.", metavar="VERSION", default_text="the newest")
    ] = None,
    force: Annotated[bool, Option("Build again, even if it exists.")] = False,
) -> Path:
    """Builds the program of a contender unless it is there; returns its path.

    Raises:
        InputError: there is nothing to build by that name or of that version.
        BuildError: the build failed.
    """
    definition = find(name)
    if definition.build is None:
        known = ", ".join(buildable())
        packages = ", ".join(definition.packages)
        raise InputError(f"{name}: Debian packages have it ({packages}); built are: {known}")
    wanted = _version(definition, version)
    bin_folder().mkdir(parents=True, exist_ok=True)
    program = _built(definition, wanted, say, force=force)
    say(f"{program}")
    return program


def _version(definition: Definition, version: str | None) -> str:
    parameter = definition.parameter("version")
    if parameter is None or parameter.values is None:
        raise InputError(f"{definition.name}: [parameters.version] is missing in its definition")
    if version is None:
        return parameter.default
    if version not in parameter.values:
        allowed = ", ".join(parameter.values)
        raise InputError(f"--version {version}: {definition.name} is built in {allowed}")
    return version


def _built(definition: Definition, version: str, say: Say, *, force: bool) -> Path:
    """A driver of ours with one version of its library."""
    name = definition.name
    program = bin_folder() / f"weir-{name}-{version}"
    if program.exists() and not force:
        return program
    base = cache.home() / "contenders"
    with tempfile.TemporaryDirectory(prefix="weir-build-") as folder:
        source = Path(folder) / name
        shutil.copytree(DRIVERS / name, source)
        if definition.build == "go":
            built = _go(name, version, source, say)
        else:
            built = _cargo(name, version, source, base / "target", say)
        shutil.copy2(built, program)
    return program


def _cargo(name: str, version: str, source: Path, target: Path, say: Say) -> Path:
    _pin(source / "Cargo.toml", rf'^({name} = \{{ version = ")[^"]*', f"={version}")
    _run(["cargo", "build", "--release", "--target-dir", str(target)], source, say)
    return target / "release" / f"weir-{name}"


def _go(name: str, version: str, source: Path, say: Say) -> Path:
    _pin(source / "go.mod", rf"^(require \S+/{name} )\S+", f"v{version}")
    # Static; `mod` lets it write the checksums.
    words = ["go", "build", "-mod=mod", "-trimpath", "-o", "program", "."]
    _run(words, source, say, CGO_ENABLED="0")
    return source / "program"


def _pin(manifest: Path, pattern: str, version: str) -> None:
    """Writes the version of the library after what the first group of `pattern` matches."""
    text = manifest.read_text(encoding="utf-8")
    line = re.compile(pattern, re.MULTILINE)
    manifest.write_text(line.sub(rf"\g<1>{version}", text), encoding="utf-8")


def _run(command: list[str], folder: Path, say: Say, **environment: str) -> None:
    """Runs a step of a build, with additional environment variables.

    Raises:
        BuildError: it failed.
    """
    say(" ".join(command))
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise BuildError(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
        raise BuildError(f"{' '.join(command[:2])} failed: {' / '.join(said)}")

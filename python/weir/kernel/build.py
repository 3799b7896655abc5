"""Builds the guest kernel: unpack, change, configure, compile, publish.

Each completed step leaves a marker file in the build folder, so that an interrupted build continues
where it stopped. The kernel is published atomically.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from weir.base.disk import sha256
from weir.base.errors import InputError
from weir.base.options import Option
from weir.kernel import cache, recipe
from weir.kernel.cache import Kernel
from weir.kernel.recipe import KernelError

Report = Callable[[str, int, int], None]
"""Progress callback: step name, done, total (0 if unknown)."""

LOG = "build.log"
_UNPACKED, _CONFIGURED = ".unpacked", ".configured"
_TAIL = 12
_LEAST_FREE_BYTES = 2 << 30
_UNNEEDED = ("Documentation/*/*", "sound/*.c", "drivers/gpu/drm/*/*.[ch]", "tools/testing")
"""A third of the sources, which a guest does not need; their Kconfig files have to stay."""


@dataclass(slots=True)
class Build:
    """A kernel build."""

    source: Path
    jobs: int
    report: Report
    virtual_tsc: bool = False
    began: float = field(default_factory=time.monotonic)

    @property
    def folder(self) -> Path:
        """The build folder: another one for another recipe or source."""
        stamp = self.source.stat()
        return cache.home() / f".build-{self.recipe}-{stamp.st_size:x}-{int(stamp.st_mtime):x}"

    @property
    def recipe(self) -> str:
        """The hash of its recipe."""
        return recipe.digest(virtual_tsc=self.virtual_tsc)

    @property
    def tree(self) -> Path:
        """The sources."""
        return self.folder / self.source.name.removesuffix(".tar.xz")

    def run(self) -> Kernel:
        """Runs all steps that are not done yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder):
            self._unpack()
            self._configure()
            self._compile()
            return self._publish()

    def _unpack(self) -> None:
        if (self.tree / _UNPACKED).exists():
            return
        shutil.rmtree(self.tree, ignore_errors=True)
        if shutil.disk_usage(self.folder).free < _LEAST_FREE_BYTES:
            raise KernelError(f"{self.folder}: a build needs 2 GB of free disk space")
        name = self.tree.name
        exclude = [f"--exclude={name}/{pattern}" for pattern in _UNNEEDED]
        command = ["tar", "--extract", "--verbose", "--file", str(self.source), *exclude]
        self._call("unpack", command, self.folder, lambda line: line.startswith(name), 70_000)
        (self.tree / _UNPACKED).touch()

    def _configure(self) -> None:
        if (self.tree / _CONFIGURED).exists():
            return
        for change in recipe.changes(virtual_tsc=self.virtual_tsc):
            path = self.tree / change.file
            if not path.is_file():
                raise KernelError(f"{self.source}: it has no {change.file}")
            path.write_text(change.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        all_config = f"KCONFIG_ALLCONFIG={recipe.OPTIONS}"
        self._make("configure", "allnoconfig", all_config)
        refused = recipe.refused((self.tree / ".config").read_text(encoding="utf-8"))
        if refused:
            raise KernelError(f"{self.source}: it does not know {', '.join(refused)}")
        (self.tree / _CONFIGURED).touch()

    def _compile(self) -> None:
        self._make("compile", f"-j{self.jobs}", "linux", total=recipe.OBJECTS)

    def _publish(self) -> Kernel:
        version = self._version()
        kernel = cache.home() / f"{version}-{self.recipe}"
        staged = self.folder / "staged"
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir()
        shutil.copy2(self.tree / "linux", staged / cache.BINARY)
        shutil.copy2(self.tree / ".config", staged / cache.CONFIG)
        shutil.copy2(self.folder / LOG, staged / LOG)
        record = {
            "version": version,
            "recipe": self.recipe,
            "source": self.source.name,
            "source_sha256": sha256(self.source),
            "built": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "wall_s": round(time.monotonic() - self.began),
            "host": platform.release(),
        }
        text = json.dumps(record, indent=2) + "\n"
        (staged / cache.RECORD).write_text(text, encoding="utf-8")
        # An existing folder is an older build of the same kernel.
        shutil.rmtree(kernel, ignore_errors=True)
        staged.rename(kernel)
        shutil.rmtree(self.folder, ignore_errors=True)
        return next(found for found in cache.kernels() if found.path == kernel)

    def _version(self) -> str:
        answer = subprocess.run(
            ["make", "--silent", *recipe.MAKE, "kernelversion"],  # noqa: S607
            cwd=self.tree,
            env=_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        return answer.stdout.strip()

    def _make(self, step: str, *arguments: str, total: int = 0) -> None:
        self._call(step, ["make", *recipe.MAKE, *arguments], self.tree, _is_object, total)

    def _call(
        self,
        step: str,
        command: Sequence[str],
        folder: Path,
        counts: Callable[[str], bool],
        total: int,
    ) -> None:
        """Runs a command, logs its output, and counts the lines that mean progress."""
        done, log = 0, self.folder / LOG
        self.report(step, 0, total)
        with log.open("a", encoding="utf-8") as logged, _started(command, folder) as process:
            for line in process.stdout or ():
                if step != "unpack":
                    logged.write(line)
                if counts(line):
                    done += 1
                    self.report(step, done, total)
            code = process.wait()
        if code != 0:
            last = " / ".join(_tail(log))
            raise KernelError(f"{step} failed (exit code {code}); {log} ends with: {last}")


def build(
    *,
    source: Annotated[
        Path | None,
        Option(
            f"Kernel source, as {recipe.PACKAGED[0]}.tar.xz.",
            metavar="FILE",
            default_text=f"{recipe.PACKAGED[0]}.tar.xz in {recipe.SOURCES}, or the newest there",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        Option("Files compiled in parallel.", default_text="one per core", short="-j", min=1),
    ] = None,
    report: Report,
    force: Annotated[bool, Option("Build again, even if it exists.")] = False,
    virtual_tsc: Annotated[
        bool, Option("Build the kernel that `weir link --virtual-tsc` needs, next to it.")
    ] = False,
) -> tuple[Kernel, bool]:
    """Returns the guest kernel, and whether it had to be built.

    With `source` it is the kernel built from exactly that file. With `virtual_tsc` it is the one
    whose processor counters can read virtual time.

    Raises:
        InputError: there is no such source.
        KernelError: packages are missing, which it names, or a step failed.
    """
    if source is not None and not source.is_file():
        raise InputError(f"--source {source}: there is no such file")
    usual = cache.default(virtual_tsc=virtual_tsc)
    there = usual if source is None else _made_of(source, recipe.digest(virtual_tsc=virtual_tsc))
    if there is not None and not force:
        return there, False
    lacking = missing(source)
    if lacking:
        raise KernelError(f"a build needs more packages: apt-get install {' '.join(lacking)}")
    jobs = jobs or len(os.sched_getaffinity(0))
    return Build(source or recipe.default_source(), jobs, report, virtual_tsc).run(), True


def _made_of(source: Path, made_by: str) -> Kernel | None:
    """Returns the kernel of a recipe built from a file of the same content."""
    digest = sha256(source)
    own = (kernel for kernel in cache.kernels() if kernel.recipe == made_by)
    return next((kernel for kernel in own if kernel.record.get("source_sha256") == digest), None)


def missing(source: Path | None = None) -> list[str]:
    """Returns the Debian packages that a build needs and this machine lacks."""
    programs = [package for name, package in recipe.PACKAGES.items() if shutil.which(name) is None]
    headers = [package for path, package in recipe.HEADERS.items() if not path.exists()]
    kernel = [] if source or recipe.sources() else [recipe.PACKAGED[0]]
    return [*kernel, *programs, *headers]


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Excludes a second build in the same folder."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise KernelError(f"{folder}: another build is running there") from None
        yield


@contextlib.contextmanager
def _started(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A command in a process group of its own, which ends with this block."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        process_group=0,
    )
    try:
        with process:
            try:
                yield process
            except BaseException:
                os.killpg(process.pid, signal.SIGTERM)
                raise
    finally:
        process.poll()


def _environment() -> dict[str, str]:
    """Returns the environment without the variables of a surrounding make or of a locale."""
    own = ("MAKE", "MFLAGS")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(own)}
    return {**kept, "LC_ALL": "C"}


def _is_object(line: str) -> bool:
    return line.startswith(("  CC ", "  AS "))


def _tail(log: Path) -> list[str]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.strip() for line in lines[-_TAIL:] if line.strip()]

"""In a guest: a writable file system over the host's, and the files that were written there.

The lower layer is the host's file system as its user may read it. What is written stays in memory.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weir.kernel.system import mount

_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
"""What udev adds to a /dev."""


@dataclass(frozen=True, slots=True)
class Root:
    """A file system to change the root to."""

    path: Path
    written: Path
    """The upper layer: each file that is new or has changed, under its path."""

    @classmethod
    def make(cls, base: Path) -> Root:
        """Mounts it below `base`, an empty folder."""
        base.mkdir()
        mount("layers", str(base), "tmpfs")
        root, upper, work = (base / name for name in ("root", "upper", "work"))
        for folder in (root, upper, work):
            folder.mkdir()
        mount("root", str(root), "overlay", f"lowerdir=/,upperdir={upper},workdir={work}")
        mount("proc", str(root / "proc"), "proc")
        mount("sys", str(root / "sys"), "sysfs")
        cls._mount_devices(root / "dev")
        return cls(root, upper)

    @staticmethod
    def _mount_devices(dev: Path) -> None:
        mount("dev", str(dev), "devtmpfs")
        for name, target in _LINKS.items():
            (dev / name).symlink_to(target)
        for name in ("pts", "shm"):
            (dev / name).mkdir(exist_ok=True)
        mount("pts", str(dev / "pts"), "devpts", "ptmxmode=666,mode=620")
        mount("shm", str(dev / "shm"), "tmpfs", "mode=1777")

    def name_hosts(self, addresses: dict[str, str]) -> None:
        """Adds lines to /etc/hosts: there is no other name service."""
        lines = "".join(f"{address} {name}\n" for name, address in addresses.items())
        with suppress(OSError), (self.path / "etc/hosts").open("a", encoding="utf-8") as hosts:
            hosts.write(lines)

    def disable_dns(self) -> None:
        """Empties /etc/resolv.conf: questions then go to loopback and are refused at once.

        The servers that it names are out of reach, and a program would wait for them.
        """
        settings = self.path / "etc/resolv.conf"
        with suppress(OSError):
            # A link may lead to where nothing can be written.
            settings.unlink(missing_ok=True)
            settings.touch()

    def collect(self, folder: str, into: Path) -> list[str]:
        """Copies what was written in `folder` to `into`; returns the paths of the files."""
        upper = self.written / folder.lstrip("/")
        return sorted(_copied(upper, into, "")) if upper.is_dir() else []


def _copied(folder: Path, into: Path, prefix: str) -> list[str]:
    """Regular files, folders and symbolic links; nothing else is kept, as marks of deletion."""
    into.mkdir(parents=True, exist_ok=True)
    found = []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path, target = f"{prefix}{entry.name}", into / entry.name
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            found += _copied(Path(entry.path), target, f"{path}/")
        elif stat.S_ISLNK(mode):
            target.symlink_to(Path(entry.path).readlink())
            found.append(path)
        elif stat.S_ISREG(mode):
            shutil.copyfile(entry.path, target)
            target.chmod(0o755 if mode & stat.S_IXUSR else 0o644)
            found.append(path)
    return found

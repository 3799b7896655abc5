"""What registering a congestion control takes of a machine, and the programs that do it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from weir.base.errors import WeirError

BTF = Path("/sys/kernel/btf/vmlinux")
"""The kernel's description of its own types."""

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_HEADERS = (Path("/usr/include/bpf/bpf_helpers.h"), Path("/usr/local/include/bpf/bpf_helpers.h"))
_PACKAGES = {"bpftool": "bpftool", "clang": "clang", "bpf/bpf_helpers.h": "libbpf-dev"}
"""Debian's package for each thing."""

_WITHOUT = "without it `weir compare vegas` still simulates"
_WITHOUT_COMPILER = "without it an object compiled elsewhere (.o) can still be installed"
_PATIENCE_S = 120


class KernelCcError(WeirError):
    """The machine cannot register congestion controls, or the kernel refused."""


def missing(*, compiling: bool = True) -> str | None:
    """What this machine lacks to register a congestion control; None if nothing.

    ``compiling`` asks for what it takes to begin with C.
    """
    if sys.platform != "linux":
        return f"congestion controls in BPF are Linux's; {_WITHOUT}"
    if os.geteuid() != 0:
        return f"only root may register congestion controls; {_WITHOUT}"
    if not BTF.exists():
        return f"there is no {BTF}: the kernel needs CONFIG_DEBUG_INFO_BTF=y; {_WITHOUT}"
    if program("bpftool") is None:
        return f"{_install(['bpftool'])}; {_WITHOUT}"
    if compiling and (lacking := _lacking_to_compile()):
        return f"{_install(lacking)}; {_WITHOUT_COMPILER}"
    return None


def program(name: str) -> str | None:
    """Where a program is, also outside the path of users who are not root."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def available() -> list[str]:
    """The congestion controls of this kernel's TCP, its own and those of BPF."""
    try:
        return _AVAILABLE.read_text(encoding="ascii").split()
    except OSError:
        raise KernelCcError(f"there is no {_AVAILABLE}: this is not Linux with IPv4") from None


def bpftool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs bpftool; its exit code says whether it did."""
    return run([program("bpftool") or "bpftool", *map(str, arguments)])


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a program that is known to be there, in English."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_PATIENCE_S,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise KernelCcError(f"{command[0]} has not ended after {_PATIENCE_S} s") from None


def release() -> tuple[int, int, int]:
    """The running kernel's version, as in its own headers."""
    numbers = platform.release().split("-")[0].split(".")
    major, minor, patch = (int("".join(filter(str.isdigit, n)) or 0) for n in [*numbers, "0"][:3])
    return major, minor, patch


def _lacking_to_compile() -> list[str]:
    lacking = [] if program("clang") else ["clang"]
    return lacking if any(map(Path.exists, _HEADERS)) else [*lacking, "bpf/bpf_helpers.h"]


def _install(lacking: Sequence[str]) -> str:
    packages = " ".join(_PACKAGES[name] for name in lacking)
    verb = "is" if len(lacking) == 1 else "are"
    return f"{' and '.join(lacking)} {verb} missing (Debian, Ubuntu: apt-get install {packages})"

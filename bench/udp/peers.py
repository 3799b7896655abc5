"""Other protocols with the same files: drivers for QUIC, built with cargo, and SRT's program."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.udp import srt as srt_driver
from bench.udp.cases import QUIC, SRT
from weir.base.errors import RunError
from weir.transfer.ends import Programs

SOURCE = Path("bench/peers")
"""The drivers, from the top of Weir's sources."""

_NEEDS = "quiche needs cmake, a C++ compiler and libclang (Debian, Ubuntu: cmake g++ libclang-dev)"


def find() -> tuple[dict[str, Programs], list[str]]:
    """The programs of all protocols that there are, and why others are missing."""
    found: dict[str, Programs] = {}
    reasons = []
    try:
        found |= build()
    except RunError as error:
        reasons.append(str(error))
    if shutil.which(srt_driver.PROGRAM) is None:
        reasons.append(f"{srt_driver.PROGRAM} is not installed (Debian, Ubuntu: srt-tools)")
    else:
        command = [sys.executable, str(Path(srt_driver.__file__).resolve())]
        found[SRT] = Programs(command, command)
    return found, reasons


def build() -> dict[str, Programs]:
    """The program of each QUIC; the first build takes some minutes.

    Raises:
        RunError: they cannot be built here.
    """
    if not SOURCE.is_dir():
        raise RunError(f"{SOURCE} is not here; start this from the top of Weir's sources")
    target = SOURCE / "target"
    command = ["cargo", "build", "--release", "--locked", "--target-dir", str(target)]
    try:
        built = subprocess.run(
            [*command, "--manifest-path", str(SOURCE / "Cargo.toml")],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise RunError("--peers needs cargo, which is not on the path") from None
    if built.returncode:
        said = [line for line in built.stderr.splitlines() if line.startswith("error")]
        raise RunError(f"{SOURCE} does not build: {(said or ['cargo failed'])[0]}; {_NEEDS}")
    programs = {peer: [str((target / "release" / peer).resolve())] for peer in QUIC}
    return {peer: Programs(command, command) for peer, command in programs.items()}

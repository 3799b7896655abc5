"""QUIC carrying the same files: drivers of our own, built with cargo when they are asked for."""

from __future__ import annotations

import subprocess
from pathlib import Path

from weir.bench.udp.cases import PEERS
from weir.errors import RunError
from weir.transfers.ends import Programs

SOURCE = Path("bench/peers")
"""The drivers, from the top of Weir's sources."""

_NEEDS = "quiche needs cmake, a C++ compiler and libclang (Debian, Ubuntu: cmake g++ libclang-dev)"


def build() -> dict[str, Programs]:
    """The program of each peer; the first build takes some minutes.

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
    programs = {peer: [str((target / "release" / peer).resolve())] for peer in PEERS}
    return {peer: Programs(command, command) for peer, command in programs.items()}

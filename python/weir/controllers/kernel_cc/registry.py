"""What is registered with the kernel: adding to it, listing, taking away."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from weir.base.errors import InputError
from weir.controllers.kernel_cc import objects
from weir.controllers.kernel_cc.machine import KernelCcError, available, bpftool, missing

State = Literal["built-in", "registered", "leaving"]

_VALUE = "bpf_struct_ops_tcp_congestion_ops"
_IN_USE = {"BPF_STRUCT_OPS_STATE_INUSE", "BPF_STRUCT_OPS_STATE_READY"}
_LEAVING = "BPF_STRUCT_OPS_STATE_TOBEFREE"
_SHOWN_LINES = 4


@dataclass(frozen=True, slots=True)
class Listed:
    """A congestion control of this kernel."""

    name: str
    state: State
    """``leaving``: removed, but open connections still use it."""
    id: int | None = None
    """Of the BPF map that holds it, as ``bpftool struct_ops`` knows it."""


def shipped() -> dict[str, Path]:
    """The algorithms that come with Weir, as C."""
    folder = Path(str(resources.files("weir.controllers.kernel_cc")))
    return {path.name.removesuffix(".bpf.c"): path for path in sorted(folder.glob("*.bpf.c"))}


def install(file: str | Path) -> list[str]:
    """Registers what ``file`` holds, and returns the names that the kernel has for it now.

    ``file`` is C (``.c``), a BPF object (``.o``), or the name of what is [`shipped`][].

    Raises:
        InputError: if the file cannot be used as it is: it does not compile, the kernel's verifier
            refuses it, its name is taken.
        KernelCcError: where the machine lacks something, which it names.
    """
    path = _path_of(str(file))
    compiling = path.suffix == ".c"
    lacking = missing(compiling=compiling)
    if lacking is not None:
        raise KernelCcError(lacking)
    with tempfile.TemporaryDirectory(prefix="weir-") as directory:
        made = objects.compile_c(path, Path(directory)) if compiling else path
        names = objects.names(made)
        _refuse_taken(names)
        _register(made, names, path)
    return names


def listed() -> list[Listed]:
    """Every congestion control of this kernel; without root BPF's count as built in."""
    added = _added() if missing(compiling=False) is None else []
    names = {item.name for item in added if item.state == "registered"}
    own = [Listed(name, "built-in") for name in available() if name not in names]
    return [*own, *added]


def remove(name: str) -> None:
    """Takes a congestion control away; connections that use it keep it until they close.

    Raises:
        InputError: if the kernel has none of that name that could be removed.
        KernelCcError: where the machine lacks something, or the kernel refuses.
    """
    lacking = missing(compiling=False)
    if lacking is not None:
        raise KernelCcError(lacking)
    added = {item.name: item for item in _added() if item.state == "registered"}
    if name not in added:
        if name in available():
            raise InputError(f"'{name}' is part of the kernel and stays")
        there = ", ".join(added) or "none"
        raise InputError(
            f"no '{name}' is registered; of congestion controls in BPF there are {there}"
        )
    done = bpftool("struct_ops", "unregister", "id", str(added[name].id))
    if done.returncode != 0 or name in available():
        raise KernelCcError(
            f"the kernel keeps '{name}': {done.stderr.strip() or 'no reason given'}"
        )


def _path_of(file: str) -> Path:
    path = Path(file)
    if not path.exists() and file in shipped():
        return shipped()[file]
    if not path.is_file():
        known = ", ".join(shipped())
        raise InputError(f"there is no file '{file}', and with Weir come only: {known}")
    if path.suffix not in {".c", ".o"}:
        raise InputError(f"'{file}' is neither C (.c) nor a BPF object (.o)")
    return path


def _refuse_taken(names: Sequence[str]) -> None:
    removable = {item.name for item in _added() if item.state == "registered"}
    for name in names:
        if name in removable:
            raise InputError(
                f"'{name}' is registered already; `weir stack remove {name}` takes it away"
            )
        if name in available():
            raise InputError(f"this kernel has a '{name}' of its own; choose another .name")


def _register(made: Path, names: Sequence[str], path: Path) -> None:
    """All of an object or nothing."""
    done = bpftool("struct_ops", "register", made)
    there = {item.name: item for item in _added() if item.state == "registered"}
    if done.returncode == 0 and all(name in there for name in names):
        return
    for name in names:
        if name in there:
            bpftool("struct_ops", "unregister", "id", str(there[name].id))
    raise InputError(f"the kernel refuses '{path}': {_reason(done.stderr)}")


def _reason(said: str) -> str:
    """The verifier's last lines; those of bpftool where the verifier said nothing."""
    lines = [line for line in said.splitlines() if line.strip()]
    ends = [i for i, line in enumerate(lines) if line.endswith("END PROG LOAD LOG --")]
    if ends:
        log = [line for line in lines[: ends[-1]] if not line.startswith("processed ")]
        return " | ".join(log[-_SHOWN_LINES:])
    return " | ".join(lines[-_SHOWN_LINES:]) or "it gave no reason"


def _added() -> list[Listed]:
    """Returns all congestion controls in BPF."""
    done = bpftool("-j", "struct_ops", "dump")
    try:
        entries: list[dict[str, Any]] = json.loads(done.stdout or "[]") or []
        pairs = list(zip(entries[::2], entries[1::2], strict=True))
        found = [
            _listed(info["bpf_map_info"], value[_VALUE]) for info, value in pairs if _VALUE in value
        ]
    except (ValueError, KeyError, TypeError):
        raise KernelCcError(
            f"bpftool cannot list what is registered: {done.stderr.strip() or done.stdout[:200]}"
        ) from None
    return [item for item in found if item is not None]


def _listed(info: dict[str, Any], value: dict[str, Any]) -> Listed | None:
    # Since Linux 6.9 the state is one level deeper.
    state = value.get("common", value)["state"]
    name = value["data"]["name"]
    if state in _IN_USE:
        return Listed(name, "registered", info["id"])
    return Listed(name, "leaving", info["id"]) if state == _LEAVING else None

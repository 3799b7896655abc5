"""From C to a BPF object, and what an object would register."""

from __future__ import annotations

import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

from weir.base.errors import InputError
from weir.controllers.kernel_cc.machine import BTF, KernelCcError, bpftool, program, release, run

_SECTION = ".struct_ops"
_LINKED = ".struct_ops.link"
_OPS = "tcp_congestion_ops"
_BPF = 247
"""ELF's number of the machine that BPF is."""

_SHOWN_LINES = 8


def compile_c(source: Path, directory: Path) -> Path:
    """Compiles ``source`` for the running kernel; the object is in ``directory``.

    Raises:
        InputError: with what the compiler said.
        KernelCcError: if the kernel's types cannot be read.
    """
    (directory / "vmlinux.h").write_text(_kernel_types(), encoding="utf-8")
    made = directory / f"{source.stem}.o"
    major, minor, patch = release()
    done = run(
        [
            program("clang") or "clang",
            *("-O2", "-g", "-target", "bpf", "-Wall"),
            # As the kernel's own headers spell it, for what differs between releases.
            "-DKERNEL_VERSION(a,b,c)=(((a)<<16)+((b)<<8)+(c))",
            f"-DLINUX_VERSION_CODE=KERNEL_VERSION({major},{minor},{patch})",
            *("-I", str(directory), "-c", str(source), "-o", str(made)),
        ]
    )
    if done.returncode != 0:
        said = "\n".join(done.stderr.splitlines()[:_SHOWN_LINES])
        raise InputError(f"'{source}' does not compile: {said}")
    return made


def names(path: Path) -> list[str]:
    """The names of the congestion controls that a BPF object registers.

    Raises:
        InputError: if it is no BPF object, registers none, or something else as well.
    """
    try:
        data = _section(path.read_bytes(), _SECTION)
    except (struct.error, ValueError, UnicodeDecodeError):
        raise InputError(f"'{path}' is no BPF object") from None
    dump = bpftool("-j", "btf", "dump", "file", path, "format", "raw")
    try:
        types = {item["id"]: item for item in json.loads(dump.stdout)["types"]}
    except (ValueError, KeyError):
        raise InputError(f"'{path}' has no BTF: compile it with -g") from None
    if _variables(types, _LINKED):
        raise InputError(
            f"'{path}' has SEC(\"{_LINKED}\"), which ends with the process that made it; write "
            f'SEC("{_SECTION}")'
        )
    kinds = {kind["name"]: kind for kind in _variables(types, _SECTION)}
    if not kinds or not data:
        raise InputError(f"'{path}' has no struct {_OPS} in SEC(\"{_SECTION}\")")
    if kinds.keys() != {_OPS}:
        others = ", ".join(sorted(kinds.keys() - {_OPS}))
        raise InputError(f"'{path}' has a struct {others}; only a {_OPS} can be installed")
    ops = kinds[_OPS]
    at = next(member["bits_offset"] for member in ops["members"] if member["name"] == "name") // 8
    # All have the same type, hence one follows the other.
    found = [_text(data, begin + at) for begin in range(0, len(data), ops["size"])]
    if not all(found):
        raise InputError(f"'{path}' has a struct {_OPS} without a .name")
    return found


@cache
def _kernel_types() -> str:
    """The running kernel's, as C."""
    dump = bpftool("btf", "dump", "file", BTF, "format", "c")
    if dump.returncode != 0:
        raise KernelCcError(f"bpftool cannot read {BTF}: {dump.stderr.strip()}")
    return dump.stdout


def _variables(types: dict[int, dict[str, Any]], section: str) -> list[dict[str, Any]]:
    """The types of the variables in a section."""
    return [
        types[types[variable["type_id"]]["type_id"]]
        for item in types.values()
        if item["kind"] == "DATASEC" and item["name"] == section
        for variable in item["vars"]
    ]


def _section(elf: bytes, wanted: str) -> bytes:
    """The contents of a section of a 64-bit ELF file; nothing if there is none."""
    if elf[:5] != b"\x7fELF\x02":
        raise ValueError(elf[:5])
    order = "<" if elf[5] == 1 else ">"
    (machine,) = struct.unpack_from(f"{order}H", elf, 18)
    if machine != _BPF:
        raise ValueError(machine)
    (table,) = struct.unpack_from(f"{order}Q", elf, 40)
    size, count, names_at = struct.unpack_from(f"{order}3H", elf, 58)
    headers = [struct.unpack_from(f"{order}II4Q", elf, table + i * size) for i in range(count)]
    if names_at >= count:
        raise ValueError(names_at)
    strings = headers[names_at][4]
    for name, _, _, _, offset, length in headers:
        if _text(elf, strings + name) == wanted:
            return elf[offset : offset + length]
    return b""


def _text(data: bytes, begin: int) -> str:
    return data[begin : data.index(b"\0", begin)].decode("ascii")

"""`weir kernel-cc`: congestion controls in BPF for this machine's kernel."""

from __future__ import annotations

from typing import Annotated

import typer

from weir.base.grid import Grid
from weir.cli import options, output
from weir.controllers import kernel_cc

_HELP = "Add congestion controls to this machine's kernel, as BPF programs."

_INSTALL_HELP = """Register the congestion control in FILE with the running kernel.

FILE is C source with a [bold]struct tcp_congestion_ops[/bold] (.c), an object compiled from it
(.o), or the name of one that comes with Weir: vegas. Any program can then select it by name, until
it is removed or the machine restarts. Requires root, a kernel with BTF, and bpftool. C source also
requires clang and libbpf's headers."""

_INSTALL_EXAMPLES = """[bold]Examples[/bold]

  weir kernel-cc install vegas

  weir kernel-cc install mine.bpf.c

  iperf3 -c example.org -C bpf_vegas"""

_LIST_HELP = "List the congestion controls of this kernel and those that Weir can add."

_REMOVE_HELP = """Unregister the BPF congestion control NAME.

Open connections keep it until they close."""

_REMOVE_EXAMPLES = """[bold]Examples[/bold]

  weir kernel-cc remove bpf_vegas"""

_WORDS = {
    "built-in": "part of this kernel",
    "registered": "registered, in BPF",
    "leaving": "removed; open connections still use it",
    "ships": "not installed; comes with Weir",
}


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    app.callback(help=_HELP, no_args_is_help=True)(_root)
    app.command(help=_INSTALL_HELP, epilog=_INSTALL_EXAMPLES)(install)
    app.command("list", help=_LIST_HELP)(list_)
    app.command(help=_REMOVE_HELP, epilog=_REMOVE_EXAMPLES)(remove)


def _root() -> None:
    """Options of all subcommands: none."""


def install(
    file: Annotated[str, typer.Argument(metavar="FILE", help="C, a BPF object, or vegas.")],
    quiet: options.Quiet = False,
) -> None:
    """Registers the congestion controls and prints their names."""
    for name in kernel_cc.install(file):
        output.note(f"registered {name}; `weir kernel-cc remove {name}` removes it", quiet=quiet)


def list_(json: options.Json = False) -> None:
    """Prints all congestion controls."""
    rows: list[dict[str, str | int | None]] = [
        {"name": item.name, "state": item.state, "id": item.id} for item in kernel_cc.listed()
    ]
    there = {row["name"] for row in rows}
    rows += [
        {"name": name, "state": "ships", "id": None}
        for name in kernel_cc.shipped()
        if f"bpf_{name}" not in there
    ]
    if json:
        output.print_json("kernel-cc list", rows)
        return
    cells = [(str(row["name"]), _WORDS[str(row["state"])], str(row["id"] or "")) for row in rows]
    output.show(Grid("", ("congestion control", "state", "BPF map"), cells, names=2).rich())


def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in the kernel.")],
    quiet: options.Quiet = False,
) -> None:
    """Unregisters one."""
    kernel_cc.remove(name)
    output.note(f"removed {name}", quiet=quiet)

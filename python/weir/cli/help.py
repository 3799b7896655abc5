"""The page of `--help`: usage, description, options by group, examples.

It has its own two-column layout, as wide as `COLUMNS`, the terminal or 80 columns, so that it stays
readable in a pipe. Typer takes three times as long to draw its pages.
"""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from weir.base.options import MEASUREMENT, NETWORK, OUTPUT, TRAFFIC
from weir.cli.output import Output
from weir.cli.table import as_typer

_OTHERS = "Options"
_ORDER = (NETWORK, TRAFFIC, MEASUREMENT, OUTPUT)
_WIDEST = 100
_DEFAULT_WIDTH = 80
_NAMES_SHARE = 0.4
"""Largest share of the page's width for the names of options."""
_WORDS = {int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "PATH"}
"""Default metavar by type."""


class Command(TyperCommand):
    """A verb with this help page."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Prints the page."""
        _print_page(self, ctx)


class Group(TyperGroup):
    """A verb with subcommands, as `weir stack`."""

    def panels(self, ctx: Any) -> dict[str, dict[str, str]]:
        """Returns the summaries of the verbs by the title of their list."""
        verbs = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        known = {name: _summary(verb.help or "") for name, verb in verbs.items() if verb}
        return {"Commands": known}

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Prints the page."""
        _print_page(self, ctx)


class Verb(typer.Typer):
    """Collects the commands that a module of this package registers.

    The first paragraph of a verb's help is its summary. A verb with subcommands has a callback,
    which is registered first and has the summary in their place.
    """

    def __init__(self, summary: str) -> None:
        super().__init__(cls=Group, add_completion=False, rich_markup_mode="rich")
        self._summary = [summary]

    def callback(self, **settings: Any) -> Any:
        """Adds what stands above subcommands."""
        return super().callback(**self._with_summary(settings))

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Adds a verb."""
        add = super().command(name, **self._with_summary({"cls": Command, **settings}))
        return lambda verb: add(as_typer(verb))

    def _with_summary(self, settings: dict[str, Any]) -> dict[str, Any]:
        paragraphs = [*self._summary, *filter(None, [settings.get("help")])]
        self._summary.clear()
        return {**settings, "help": "\n\n".join(paragraphs)}


def _width() -> int:
    """Returns the width of a page: `COLUMNS`, the terminal's, or 80 in a pipe."""
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return shutil.get_terminal_size((_DEFAULT_WIDTH, 0)).columns
    return _DEFAULT_WIDTH


def _print_page(command: Command | Group, ctx: Any) -> None:
    console = Output(min(_width(), _WIDEST))
    console.print(Text.assemble(("Usage: ", "bold"), _usage(command, ctx)))
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        console.print()
        console.print(Text.from_markup(paragraph.replace("\n", " ")))
    for title, entries in _sections(command, ctx):
        console.print()
        console.print(Text(f"{title}:", style="bold"))
        console.print(_entries(entries, console.width))
    if command.epilog:
        console.print()
        # Examples are not wrapped, so that they can be copied.
        console.print(Text.from_markup(command.epilog), soft_wrap=True)


def _usage(command: Command | Group, ctx: Any) -> str:
    parts = [ctx.command_path, "[OPTIONS]"]
    for param in command.get_params(ctx):
        if isinstance(param, TyperArgument):
            name = _argument(param)
            parts.append(name if param.required else f"[{name}]")
    if isinstance(command, TyperGroup):
        parts.append(command.subcommand_metavar)
    return " ".join(parts)


def _sections(command: Command | Group, ctx: Any) -> Iterator[tuple[str, list[tuple[str, Text]]]]:
    """Yields arguments, verbs, options by group, then options without a group."""
    params = [p for p in command.get_params(ctx) if not getattr(p, "hidden", False)]
    arguments = [(_argument(p), _help(p)) for p in params if isinstance(p, TyperArgument)]
    if arguments:
        yield "Arguments", arguments
    if isinstance(command, Group):
        for title, found in command.panels(ctx).items():
            yield title, [(name, Text.from_markup(text)) for name, text in found.items()]
    groups: dict[str, list[tuple[str, Text]]] = {name: [] for name in _ORDER}
    for param in params:
        if isinstance(param, TyperOption):
            group = groups.setdefault(param.rich_help_panel or _OTHERS, [])
            group.append((_option(param), _help(param)))
    others = groups.pop(_OTHERS, [])
    yield from ((title, entries) for title, entries in groups.items() if entries)
    if others:
        yield _OTHERS, others


def _entries(entries: list[tuple[str, Text]], columns: int) -> Padding:
    table = Table.grid(padding=(0, 2), pad_edge=False)
    most = int(columns * _NAMES_SHARE)
    widest = max(len(name) for name, _ in entries)
    table.add_column(style="cyan", width=min(widest, most), overflow="fold")
    table.add_column()
    for name, text in entries:
        table.add_row(Text(name), text)
    return Padding(table, (0, 0, 0, 2))


def _argument(param: TyperArgument) -> str:
    return param.metavar or param.name.upper()


def _option(param: TyperOption) -> str:
    """`-n, --repeat NUMBER`, or `--open/--no-open`."""
    names = ", ".join(sorted(param.opts, key=len))
    names = "/".join([names, *param.secondary_opts])
    if param.is_flag:
        return names
    return f"{names} {param.metavar or _word(param)}"


def _word(param: TyperOption) -> str:
    return _WORDS.get(param.type_descriptor.annotation, "TEXT")


def _help(param: TyperArgument | TyperOption) -> Text:
    notes = [*_range(param), *_default(param)]
    text = Text.from_markup(param.help or "")
    return text.append(f" [{'; '.join(notes)}]", "dim") if notes else text


def _range(param: TyperArgument | TyperOption) -> Iterator[str]:
    low, high = param.min, param.max
    if low is not None and high is not None:
        yield f"{low} to {high}"
    elif low:
        yield f"at least {low}"


def _default(param: TyperArgument | TyperOption) -> Iterator[str]:
    if param.required:
        yield "required"
    elif isinstance(param.show_default, str):
        yield f"default: {param.show_default}"
    elif param.show_default and not callable(param.default) and param.default:
        # Of --open/--no-open, the name that is the default.
        yield f"default: {param.opts[0] if param.default is True else param.default}"


def _summary(text: str) -> str:
    """The first paragraph of a verb's help, as one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())

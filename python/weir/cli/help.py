"""The page of `--help`: usage, description, options by group, examples.

It has its own two-column layout, as wide as `COLUMNS`, the terminal or 80 columns, so that it stays
readable in a pipe. It is text with bold words, without Rich, whose import takes a quarter of the
time of `weir --help`.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from weir.base.options import MEASUREMENT, NETWORK, OUTPUT, TRAFFIC
from weir.cli.output import print_text
from weir.cli.table import as_typer

_OTHERS = "Options"
_ORDER = (NETWORK, TRAFFIC, MEASUREMENT, OUTPUT)
_WIDEST = 100
_DEFAULT_WIDTH = 80
_NAMES_SHARE = 0.4
"""Largest share of the page's width for the names of options."""
_GAP = "  "
_STYLES = {"bold": "1", "cyan": "36", "dim": "2"}
"""Codes of ECMA-48 (SGR) by the name in `[bold]…[/bold]`."""
_MARK = re.compile(r"\[(/?)(bold|cyan|dim)\]")
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
    columns = min(_width(), _WIDEST)
    lines = _wrapped(f"[bold]Usage: [/bold]{_usage(command, ctx)}", columns)
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        lines += ["", *_wrapped(paragraph.replace("\n", " "), columns)]
    for title, entries in _sections(command, ctx):
        lines += ["", f"[bold]{title}:[/bold]", *_entries(entries, columns)]
    if command.epilog:
        # Examples are not wrapped, so that they can be copied.
        lines += ["", command.epilog]
    print_text(_styled("\n".join(lines)))


def _styled(text: str) -> str:
    """`text` with codes of the terminal in place of its marks, or without any (no-color.org)."""
    plain = (
        not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    )
    if plain:
        return _MARK.sub("", text)
    return _MARK.sub(lambda mark: f"\x1b[{'0' if mark[1] else _STYLES[mark[2]]}m", text)


def _wrapped(text: str, columns: int) -> list[str]:
    """Lines of at most `columns` characters; marks take none, and a longer word is cut."""
    lines, space = [""], columns
    for word in text.split():
        size = len(_MARK.sub("", word))
        if lines[-1] and size + 1 <= space:
            lines[-1], space = f"{lines[-1]} {word}", space - size - 1
            continue
        if lines[-1]:
            lines.append("")
        while size > columns:
            lines[-1], word, size = word[:columns], word[columns:], size - columns
            lines.append("")
        lines[-1], space = word, columns - size
    return lines


def _usage(command: Command | Group, ctx: Any) -> str:
    parts = [ctx.command_path, "[OPTIONS]"]
    for param in command.get_params(ctx):
        if isinstance(param, TyperArgument):
            name = _argument(param)
            parts.append(name if param.required else f"[{name}]")
    if isinstance(command, TyperGroup):
        parts.append(command.subcommand_metavar)
    return " ".join(parts)


def _sections(command: Command | Group, ctx: Any) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yields arguments, verbs, options by group, then options without a group."""
    params = [p for p in command.get_params(ctx) if not getattr(p, "hidden", False)]
    arguments = [(_argument(p), _help(p)) for p in params if isinstance(p, TyperArgument)]
    if arguments:
        yield "Arguments", arguments
    if isinstance(command, Group):
        for title, found in command.panels(ctx).items():
            yield title, list(found.items())
    groups: dict[str, list[tuple[str, str]]] = {name: [] for name in _ORDER}
    for param in params:
        if isinstance(param, TyperOption):
            group = groups.setdefault(param.rich_help_panel or _OTHERS, [])
            group.append((_option(param), _help(param)))
    others = groups.pop(_OTHERS, [])
    yield from ((title, entries) for title, entries in groups.items() if entries)
    if others:
        yield _OTHERS, others


def _entries(entries: list[tuple[str, str]], columns: int) -> Iterator[str]:
    names = min(max(len(name) for name, _ in entries), int(columns * _NAMES_SHARE))
    texts = columns - names - 2 * len(_GAP)
    for name, text in entries:
        pairs = zip_longest(_wrapped(name, names), _wrapped(text, texts), fillvalue="")
        for left, right in pairs:
            yield f"{_GAP}[cyan]{left}[/cyan]{' ' * (names - len(left))}{_GAP}{right}".rstrip()


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


def _help(param: TyperArgument | TyperOption) -> str:
    notes = [*_range(param), *_default(param)]
    return f"{param.help or ''} [dim][{'; '.join(notes)}][/dim]" if notes else param.help or ""


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

"""`weir conform`: judges stacks by test cases of drafts, RFCs and bug reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from weir.base.disk import write_text
from weir.base.errors import InputError
from weir.base.grid import Grid, cautioned
from weir.base.options import MEASUREMENT, OUTPUT, Option, chosen
from weir.cli import complete, options, output, packet_scripts, plans, screen, table
from weir.cli.help import Verb
from weir.conform import baseline, words
from weir.conform.cases.plans import Planned, Request, planned
from weir.conform.cases.suites import SUITE
from weir.conform.cases.suites import suites as all_suites
from weir.conform.junit import junit
from weir.conform.outcome import Row, is_good
from weir.conform.run import judged
from weir.guest.script_files import SUFFIX
from weir.running.execution import Execution

_HELP = """\
A suite is a list of cases, and a case has criteria with their sources. Prints a verdict per
criterion and stack. A known failure is listed in the suite with its reason.
[bold]weir list suites[/bold] lists the suites, docs/conform.md explains them.

A packet script is a file in the language of packetdrill, without what only a kernel has. It injects
TCP segments, makes socket calls and states which segments must be sent and when, in virtual time.
Its head names its case ids, its source, its stack, and the worlds where it fails for a known
reason. Prints a line per script, and for a failure the expected and the actual packet. See
docs/packetdrill.md.

Exit code 0: all criteria and scripts hold, or fail as known. 1: one does not, cannot be judged, or
a known failure of a script has gone. 2: bad input."""

_EXAMPLES = """[bold]Examples[/bold]

  weir conform bbr

  weir conform bbr rfc9743 --stack bbr3,mine.py:Mine --junit conform.xml

  weir conform cubic --stack cubic --world kernel --virtual

  weir conform quic-recovery --stack contender:quinn --world kernel --virtual

  weir conform --stack bbr3 --baseline results/conform/latest

  weir conform tests/packetdrill

  weir conform my-script.pkt --stack rack/reno

  weir conform tests/packetdrill --world kernel --virtual

  weir conform packetdrill/gtests/net/tcp --keep-going"""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(conform)


_Suites = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SUITE|PATH...",
        help="Suites to run, or files of them (*.toml), or packet scripts: files, or folders of "
        "them (*.pkt).",
        show_default="all suites",
        autocompletion=complete.suites,
    ),
]


def _at(text: str, flag: str, metavar: str = "FILE") -> Option:
    return Option(text, OUTPUT, metavar=metavar, flag=flag)


_JunitFile = Annotated[Path | None, _at("Write JUnit XML.", "--junit")]
_MarkdownFile = Annotated[
    Path | None, _at("Write a summary in Markdown, for a pull request.", "--markdown")
]
_Baseline = Annotated[
    Path | None,
    _at("Fail only for rows that are worse than in the results in DIR.", "--baseline", "DIR"),
]
_KeepGoing = Annotated[
    bool,
    Option(
        "Go on after a packet script that is not understood, and count by folder.",
        MEASUREMENT,
        flag="--keep-going",
    ),
]


@table.with_options_of(Request, Execution, without=["pcap"])
def conform(
    suites: _Suites = None,
    *,
    virtual: options.Virtual = False,
    kernel: options.Kernel = None,
    junit_file: _JunitFile = None,
    markdown_file: _MarkdownFile = None,
    baseline_directory: _Baseline = None,
    keep_going: _KeepGoing = False,
    dry_run: options.DryRun = False,
    no_report: options.NoReport = False,
    opened: options.Open = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Runs the cases, prints the rows, draws the report."""
    report = plans.reporting(no_report=no_report, opened=opened)
    plans.choose_kernel(kernel, virtual=virtual, dask=given["dask"])
    before = None if baseline_directory is None else baseline.load(baseline_directory)
    for file in (junit_file, markdown_file):
        options.check_output(file)
    world = plans.world_of(given["world"], virtual=virtual)
    files = _scripts(suites or [])
    if files:
        own: dict[str, object] = {"--junit": junit_file, "--markdown": markdown_file}
        own |= {"--baseline": before, "--dry-run": dry_run, "--open": opened}
        _refuse([name for name, value in own.items() if value], given)
        packet_scripts.run(
            files, given["stacks"], world, keep_going=keep_going, as_json=json, quiet=quiet
        )
        return
    if keep_going:
        raise InputError("--keep-going has no effect on suites; name files or folders of scripts")
    found = planned(Request(suites or (), **{**chosen(Request, given), "world": world}))
    if dry_run:
        _list(found, as_json=json)
        return
    how = plans.execution(given, quiet=quiet)
    results = None if found.plan is None else plans.run_plan(found.plan, report, **how)
    rows = judged(found, results).rows
    changes = [] if before is None else baseline.changes(rows, before)
    texts = [change.text for change in changes]
    if junit_file is not None:
        write_text(junit_file, junit(rows))
    if markdown_file is not None:
        write_text(markdown_file, words.markdown(rows, texts))
    caution = "" if results is None else results.caution
    if json:
        health = {"health": caution} if caution else {}
        output.print_json("conform", rows, changes=texts, **health)
    else:
        _show(rows, texts, caution)
    if results is not None:
        plans.finish(results, report, quiet=quiet)
    if any(c.is_regression for c in changes) if before is not None else _fails(rows):
        raise typer.Exit(1)


def _scripts(names: Sequence[str]) -> list[Path]:
    """Returns the files and folders of packet scripts among the arguments.

    Raises:
        InputError: there are suites too.
    """
    files = [Path(name) for name in names if name not in all_suites() and _is_path(name)]
    if files and len(files) < len(names):
        other = next(name for name in names if Path(name) not in files)
        raise InputError(f"{other}: name suites, or files and folders of scripts, not both")
    return files


def _is_path(name: str) -> bool:
    if name.endswith(SUITE):
        return False
    return Path(name).exists() or "/" in name or name.endswith(SUFFIX)


def _refuse(named: list[str], given: dict[str, Any]) -> None:
    """Refuses options that have no effect on scripts."""
    others = {name: value for name, value in given.items() if name not in ("stacks", "world")}
    for text in (
        *named,
        *table.changed_options(Request, others),
        *table.changed_options(Execution, others),
    ):
        raise InputError(f"{text} has no effect on packet scripts; leave it out")


def _list(found: Planned, *, as_json: bool) -> None:
    """Prints the runs of `--dry-run`, and the number of packet scripts."""
    if found.plan is not None:
        plans.list_plan("conform", found.plan, as_json=as_json)
    elif as_json:
        output.print_json("conform", [])
    scripts = sum(subject.is_script for subject in found.subjects)
    if scripts and not as_json:
        screen.show(Text(f"{scripts} packet scripts"))


def _fails(rows: Sequence[Row]) -> bool:
    return not all(map(is_good, rows))


def _show(rows: Sequence[Row], changes: Sequence[str], caution: str) -> None:
    title = cautioned("conform: one row per criterion and stack", caution)
    grid = Grid(title, words.HEADERS, words.table(rows), 6, 1)
    screen.show(Group(grid.rich(), *screen.points([*words.by_stack(rows), *changes])))

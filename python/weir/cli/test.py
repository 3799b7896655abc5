"""`weir test`: measures the path to a machine that runs `weir test --server`."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weir.base.errors import InputError
from weir.base.options import Option, chosen
from weir.cli import options, output, screen, table
from weir.cli import transfer as tables
from weir.cli.help import Verb
from weir.pathtest import ssh
from weir.pathtest.options import SERVER, PathTest, ServerOptions
from weir.probes import channel
from weir.running.options import RESULTS, Out

if TYPE_CHECKING:
    from weir.cli.plans import Reporting
    from weir.pathtest.client import Client
    from weir.probes.record import Order

_HELP = """\
Loads the path by the kernel's TCP, by our transport, or by UDP at a rate, and probes it at the same
time. Prints goodput, round-trip times without and under load, responsiveness, retransmissions, loss
and jitter, with 95 % intervals over the repeats, and what the path does to ECN and DSCP. The
results are a result directory as of every experiment: [bold]weir diff[/bold] compares two of them.

With an address [bold]ssh://HOST[/bold] the test starts the server there by OpenSSH's client, with a
key of its own, and ends it.

With [bold]--server[/bold] this is the other end, which takes part in tests until Ctrl-C. It listens
on one port, for TCP and UDP. A client must have a copy of its key, which
[bold]weir recv --new-key[/bold] makes. The server sends only to a client that has proved itself,
only zeros and times, and only within its limits. It reads and writes no file but the key.

Exit codes: 0 measured, 1 no server or a run failed, 2 bad input or a wrong key. See \
docs/test.md."""

_EXAMPLES = """[bold]Examples[/bold]

  weir test --server --key-file weir.key

  weir test --server --key-file weir.key --listen 192.0.2.7:9077 --max-rate 100mbit --max-time 20s

  weir test --server --no-key --listen 127.0.0.1:9077

  weir test example.org --key-file weir.key

  weir test example.org --key-file weir.key --cc cubic,bbr --direction up,down,both --streams 4

  weir test example.org --key-file weir.key --cc cubic --stack rack/cubic --stack rack/bbr

  weir test example.org --key-file weir.key --udp 10mbit --direction up,down

  weir test ssh://example.org --repeat 5

  weir test 192.0.2.7:9077 --duration 30s --repeat 10 --json"""

_Server = Annotated[bool, Option("Take part in tests of other machines, until Ctrl-C.", short="-s")]
_KeyFile = Annotated[
    Path | None,
    Option(
        "Key of the server, of which the client has a copy. With {server}, - reads it from a line "
        "of standard input, at whose end the server ends.",
        metavar="FILE",
    ),
]
_NoKey = Annotated[bool, Option("Admit any client that can reach the port.", SERVER)]
_Stdio = Annotated[
    bool,
    Option("Take part in runs of weir run --hosts, which starts this over ssh.", hidden=True),
]


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(path_test)


@table.with_options_of(PathTest, ServerOptions, ssh.started)
def path_test(
    host: Annotated[
        str | None,
        typer.Argument(
            metavar="HOST",
            help="HOST[:PORT] that runs weir test --server, or ssh://[USER@]HOST[:PORT] to start "
            "it there.",
        ),
    ] = None,
    server: _Server = False,
    *,
    key_file: _KeyFile = None,
    no_key: _NoKey = False,
    stdio: _Stdio = False,
    out: Out = RESULTS,
    no_report: options.NoReport = False,
    opened: options.Open = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Runs every load, and prints what was measured; or takes part in tests."""
    if server:
        for text in (*([host] if host else []), *table.changed_options(PathTest, given)):
            raise InputError(f"{text} has no effect with --server; leave it out")
        _take_part(given, key_file, no_key=no_key, stdio=stdio, quiet=quiet)
        return
    alone = ["--no-key"] * no_key + ["--stdio"] * stdio
    for text in (*alone, *table.changed_options(ServerOptions, given)):
        raise InputError(f"{text}: it is for --server; leave it out")
    if host is None:
        raise InputError("HOST: name the machine that runs weir test --server, or add --server")
    _measure_path(
        host,
        key_file,
        given,
        out=Path(out),
        reporting={"no_report": no_report, "opened": opened},
        as_json=json,
        quiet=quiet,
    )


def _take_part(
    given: dict[str, Any], key_file: Path | None, *, no_key: bool, stdio: bool, quiet: bool
) -> None:
    if stdio:
        from weir.hosts.agent import Agent

        if key_file is not None or no_key:
            raise InputError("--stdio: access is by ssh; leave out --key-file and --no-key")
        Agent().serve()
        return
    from weir.cli.path_server import serve

    serve(ServerOptions(**chosen(ServerOptions, given)), key_file, no_key=no_key, quiet=quiet)


def _measure_path(
    host: str,
    key_file: Path | None,
    given: dict[str, Any],
    *,
    out: Path,
    reporting: dict[str, bool],
    as_json: bool,
    quiet: bool,
) -> None:
    from weir.cli import plans
    from weir.pathtest import plan
    from weir.pathtest.client import Client

    report = plans.reporting(**reporting)
    wanted = PathTest(**chosen(PathTest, given))
    with options.as_typed():
        plan.check(wanted)
    tables.warn_of_exposed(key_file, quiet=quiet)
    with ExitStack() as resources:
        name, key = _server(resources, host, key_file, chosen(ssh.started, given))
        client = resources.enter_context(Client(name, key))
        orders = plan.orders(wanted, client)
        _measure(client, orders, wanted.repeat, out, report, as_json=as_json, quiet=quiet)


def _server(
    resources: ExitStack, host: str, key_file: Path | None, over_ssh: dict[str, Any]
) -> tuple[str, bytes | None]:
    """Returns the server's address and key; over ssh it is started."""
    if host.startswith(ssh.SCHEME):
        if key_file is not None:
            raise InputError(f"--key-file {key_file}: ssh:// makes a key of its own")
        there = resources.enter_context(ssh.started(host, **over_ssh))
        return there.host, there.key
    for text in table.changed_options(ssh.started, over_ssh):
        raise InputError(f"{text}: it is for ssh://HOST; leave it out")
    return host, None if key_file is None else channel.read_key(key_file)


def _measure(
    client: Client,
    orders: list[Order],
    repeat: int,
    out: Path,
    report: Reporting,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from weir.cli import plans
    from weir.cli.rows import case_rows
    from weir.pathtest import meter, plan, summary

    command = shlex.join(["weir", *sys.argv[1:]])
    made = plan.test_plan(command, client.host, orders, repeat)
    with meter.shown(len(made.runs), show=not quiet) as live:
        results = meter.run(made, client, live, out)
    text = summary.verdict(results, client.host)
    if as_json:
        output.print_json("test", case_rows(results), host=client.host, verdict=text)
    else:
        screen.show(text)
        screen.show(summary.grid(results).rich())
    plans.finish(results, report, quiet=quiet)

"""`weir test`: measures the path to a machine that runs `weir serve`."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weir.base.errors import InputError
from weir.base.options import MEASUREMENT, TRAFFIC
from weir.cli import options, output, plans
from weir.cli import transfer as tables
from weir.transfer.files import quantity

if TYPE_CHECKING:
    from weir.pathtest.client import Client
    from weir.probes.record import Order

_HELP = """Measure the path to a machine that runs [bold]weir serve[/bold].

Loads the path by the kernel's TCP, by our transport, or by UDP at a rate, and probes it at the same
time. Prints goodput, round-trip times without and under load, responsiveness, retransmissions, loss
and jitter, with 95 % intervals over the repeats, and what the path does to ECN and DSCP. The
results are a result directory as of every experiment: [bold]weir diff[/bold] compares two of them.

With an address [bold]ssh://HOST[/bold] the test starts the server there by OpenSSH's client, with a
key of its own, and ends it.

Exit codes: 0 measured, 1 no server or a run failed, 2 bad input or a wrong key. See \
docs/test.md."""

_EXAMPLES = """[bold]Examples[/bold]

  weir test example.org --key-file weir.key

  weir test example.org --key-file weir.key --cc cubic,bbr --direction up,down,both --streams 4

  weir test example.org --key-file weir.key --cc cubic --stack rack/cubic --stack rack/bbr

  weir test example.org --key-file weir.key --udp 10mbit --direction up,down

  weir test ssh://example.org --repeat 5

  weir test 192.0.2.7:9077 --duration 30s --repeat 10 --json"""

_SSH = "Over ssh"
_DURATION, _WARMUP = "15s", "3s"
_DEFAULT_DIRECTIONS = "up,down"


_Cc = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Congestion controls of the kernel, or all that both ends have.",
        show_default="the kernel's default",
        rich_help_panel=TRAFFIC,
    ),
]
_Stack = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STACK",
        help="Our transport over UDP, as in rack/cubic; repeat the option for further stacks.",
        show_default="none",
        rich_help_panel=TRAFFIC,
    ),
]
_Streams = Annotated[
    int,
    typer.Option(
        metavar="NUMBER",
        min=1,
        max=64,
        help="Parallel flows in each direction.",
        rich_help_panel=TRAFFIC,
    ),
]
_Direction = Annotated[
    str,
    typer.Option(
        metavar="up,down,both",
        help="Directions of the load, one run each; both is up and down at the same time.",
        rich_help_panel=TRAFFIC,
    ),
]
_Udp = Annotated[
    str | None,
    typer.Option(
        metavar="RATE",
        help="Load by UDP datagrams at this rate, in place of TCP.",
        show_default="off",
        rich_help_panel=TRAFFIC,
    ),
]
_Warmup = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Part of it at the beginning that is not measured.",
        show_default=f"{_WARMUP}, at most a third of the time",
        rich_help_panel=MEASUREMENT,
    ),
]
_Repeat = Annotated[
    int,
    typer.Option(
        "--repeat",
        "-n",
        metavar="NUMBER",
        min=1,
        help="Repeats of every load.",
        rich_help_panel=MEASUREMENT,
    ),
]
_KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", "--key", metavar="FILE", help="Copy of the server's key; see weir key."
    ),
]
_Remote = Annotated[
    str,
    typer.Option(metavar="PROGRAM", help="With ssh://: Weir on that host.", rich_help_panel=_SSH),
]
_Ssh = Annotated[
    str,
    typer.Option(
        metavar="COMMAND",
        help="With ssh://: OpenSSH's client and its options.",
        rich_help_panel=_SSH,
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(path_test)


def path_test(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help="HOST[:PORT] that runs weir serve, or ssh://[USER@]HOST[:PORT] to start it there.",
        ),
    ],
    cc: _Cc = None,
    stack: _Stack = None,
    streams: _Streams = 1,
    direction: _Direction = _DEFAULT_DIRECTIONS,
    udp: _Udp = None,
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Time of each load.", rich_help_panel=MEASUREMENT)
    ] = _DURATION,
    warmup: _Warmup = "",
    repeat: _Repeat = 3,
    key_file: _KeyFile = None,
    remote: _Remote = "weir",
    ssh: _Ssh = "ssh",
    out: plans.Out = plans.OutDefault,
    no_report: plans.NoReport = False,
    opened: plans.Open = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Runs every load, and prints what was measured."""
    from weir.pathtest.client import Client
    from weir.pathtest.ssh import SCHEME
    from weir.pathtest.ssh import remote as start
    from weir.probes import channel

    report = plans.reporting(no_report=no_report, opened=opened)
    duration_s, warmup_s = _times(duration, warmup)
    udp_bps = None
    with options.as_typed():
        if udp is not None:
            udp_bps = quantity("rate", "udp", udp)
    for option, given in (("--cc", cc), ("--stack", stack and stack[0])):
        if udp is not None and given is not None:
            raise InputError(
                f"{option} {given}: datagrams have no congestion control; leave out --udp"
            )
    tables.warn_of_exposed(key_file, quiet=quiet)
    with ExitStack() as resources:
        key: bytes | None
        if host.startswith(SCHEME):
            if key_file is not None:
                raise InputError(f"--key-file {key_file}: ssh:// makes a key of its own")
            there = resources.enter_context(start(host, ssh, remote))
            name, key = there.host, there.key
        else:
            for option, given, default in (("--remote", remote, "weir"), ("--ssh", ssh, "ssh")):
                if given != default:
                    raise InputError(f"{option} {given}: it is for ssh://HOST; leave it out")
            name, key = host, None if key_file is None else channel.read_key(key_file)
        client = resources.enter_context(Client(name, key))
        loads = _Loads(cc, stack or [], streams, udp_bps)
        orders = _orders(client, loads, direction, duration_s, warmup_s)
        _measure(client, orders, repeat, out, report, as_json=json, quiet=quiet)


def _measure(
    client: Client,
    orders: list[Order],
    repeat: int,
    out: Path,
    report: plans.Reporting,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
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
        output.show(text)
        output.show(summary.grid(results).rich())
    plans.finish(results, report, quiet=quiet)


def _times(duration: str, warmup: str) -> tuple[float, float]:
    with options.as_typed():
        duration_s = quantity("time", "duration", duration)
        if not 0.5 <= duration_s <= 3600:
            raise InputError(f"duration='{duration}': allowed are 500ms to 1h")
        if not warmup:
            return duration_s, min(quantity("time", "warmup", _WARMUP), duration_s / 3)
        warmup_s = quantity("time", "warmup", warmup)
        if not 0 <= warmup_s < duration_s:
            raise InputError(f"warmup='{warmup}': it must be shorter than --duration {duration}")
    return duration_s, warmup_s


@dataclass(frozen=True, slots=True)
class _Loads:
    """The loads that the user chose."""

    cc: str | None
    stacks: list[str]
    streams: int
    udp_bps: float | None


def _orders(
    client: Client, loads: _Loads, direction: str, duration_s: float, warmup_s: float
) -> list[Order]:
    from weir.pathtest import plan
    from weir.probes.record import Order

    ways = plan.chosen_directions(direction)
    longest, fastest = client.limits["time_s"], client.limits["rate_bps"]
    if duration_s > longest:
        raise InputError(f"--duration: the server allows at most {longest:g} s (--max-time)")
    udp_bps, streams = loads.udp_bps, loads.streams
    if udp_bps is not None and fastest is not None and udp_bps > fastest:
        raise InputError(f"--udp: the server allows at most {fastest / 1e6:g} Mbit/s (--max-rate)")
    if udp_bps is not None:
        return [Order("", way, 1, duration_s, warmup_s, udp_bps) for way in ways]
    stacks = plan.chosen_stacks(loads.stacks)
    names = []
    if not stacks or loads.cc is not None:
        names = plan.chosen_controls(loads.cc, client, ways)
    return [
        order
        for way in ways
        for order in (
            *(Order(name, way, streams, duration_s, warmup_s) for name in names),
            *(Order("", way, streams, duration_s, warmup_s, stack=name) for name in stacks),
        )
    ]

"""Options of file transfers that take more than a line."""

from __future__ import annotations

from os import PathLike
from typing import Annotated

from weir.base.options import Option

DEFAULT_STACK = "rack/bbr(overflow=avoid)"
"""Stack of a transfer without `stack`."""
DEFAULT_MSS, DEFAULT_SEALED_MSS = "1420b", "1396b"
"""Datagrams fit packets of 1500 bytes, over IPv6 too."""
DEFAULT_FOLDER = "."
"""Where files go without `dir`."""
DEFAULT_PORT = "[::]:9000"
"""Where a receiver listens without `bind`."""

StackName = Annotated[
    str | None,
    Option(
        "Transport: `weir list` names all; `FILE.py:CLASS` is your own controller. `udp`: "
        "plain datagrams, to count losses.",
        metavar="RECOVERY/CONTROLLER",
        default_text=DEFAULT_STACK,
    ),
]
Pacing = Annotated[
    bool,
    Option(
        "Spread a window over the RTT, or send with each acknowledgement. Controllers that "
        "set a rate (bbr) always pace."
    ),
]
Window = Annotated[
    int | None,
    Option("Fixed window in segments, for `go-back-n`, `selective-repeat` and `none`.", min=1),
]
Mss = Annotated[
    str | None,
    Option(
        "File bytes per segment, 64b to 65447b.",
        metavar="SIZE",
        default_text=f"{DEFAULT_MSS}, {DEFAULT_SEALED_MSS} with a key",
    ),
]
KeyFile = Annotated[
    str | PathLike[str] | None,
    Option(
        "Encrypt with the key in this file, of which the other end needs a copy. "
        "`weir recv --new-key` makes one; see docs/security.md.",
        metavar="FILE",
    ),
]
Quota = Annotated[
    str | None,
    Option(
        "Most that all files in {dir} may take, partial ones included.",
        metavar="SIZE",
        default_text="none",
    ),
]
Memory = Annotated[
    str,
    Option(
        "Most memory for all senders: connections, data out of order or not yet written, answers "
        "and reports. The process takes about 50 MiB more.",
        metavar="SIZE",
    ),
]
KeyDir = Annotated[
    str | PathLike[str] | None,
    Option(
        "Seal everything, and accept senders that have one of the keys DIR/NAME.key. A "
        "removed key is no longer accepted.",
        metavar="DIR",
    ),
]
PartialExpiry = Annotated[
    str,
    Option("Remove a partial file that no sender has resumed for this long.", metavar="TIME"),
]

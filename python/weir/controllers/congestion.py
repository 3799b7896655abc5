"""Congestion controllers written in Python.

A controller is a class in a file of its own, given wherever a stack is: `weir compare reno
mine.py:Mine`, `stack = "newreno/mine.py:Mine"` in a scenario, `weir send --stack mine.py:Mine`. The
transport is the one in Rust; it calls the class through the same interface as its own controllers.
docs/controllers-python.md tells the whole story. `weir conform rfc9743 --stack mine.py:Mine` judges
a new one by the criteria of RFC 9743.

Data is counted in bytes, always as integers. A name that ends in `_ns` is a time in nanoseconds,
one in `_s` the same in seconds, one in `_bps` a rate in bits per second.
"""

from __future__ import annotations

import ast
import inspect
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from weir._native import AckEvent, CcContext, CongestionEvent, PathEvent

__all__ = ["AckEvent", "CcContext", "CongestionControl", "CongestionEvent", "PathEvent"]


class CongestionControl:
    """The base of every controller: derive from it, define `on_ack` and `on_congestion`.

    One object is made for each connection. It says what it wants by setting its attributes, which
    are read after each call:

    Attributes:
        cwnd: The congestion window in bytes, from 1 to 2**40. Below one segment it counts as one.
            Of a float the whole bytes count. Set to the initial window at first.
        ssthresh: The slow-start threshold in bytes; None while it is infinite.
        pacing_rate_bps: The rate to pace at in bits per second; None leaves sending to the window.
        phase: What the tables call the state of the algorithm, a word of at most 32 letters; None
            for `slow_start` below `ssthresh` and `congestion_avoidance` above.
        mss: The largest payload of a segment in bytes, when the connection began.
        initial_window: The first window in bytes.
        needs_ecn: Of the class: whether packets are to be marked ECN-capable.
        needs_own_reduction: Of the class: whether `cwnd` alone says what may be sent in recovery
            too. Otherwise the transport lowers what is in flight towards `cwnd` step by step (PRR,
            RFC 6937).

    Further attributes of the class are its parameters: `mine.py:Mine(beta=0.7)` sets `beta`.

    For one acknowledgement the calls come in this order: `on_spurious` if an earlier reduction
    proved unfounded, `on_congestion` once per cause, `on_ack` exactly once, `on_epoch_end` if the
    episode is over. What they are handed is valid until they return; the next event fills the same
    objects.
    """

    needs_ecn: ClassVar[bool] = False
    needs_own_reduction: ClassVar[bool] = False

    cwnd: float
    ssthresh: float | None = None
    pacing_rate_bps: float | None = None
    phase: str | None = None

    def __init__(self, mss: int, initial_window: int) -> None:
        self.mss = mss
        self.initial_window = initial_window
        self.cwnd = initial_window
        self.start()

    def start(self) -> None:
        """The connection begins: set what the algorithm remembers."""

    def on_ack(self, cx: CcContext, ack: AckEvent) -> None:
        """An acknowledgement arrived: the place to grow."""
        raise NotImplementedError

    def on_congestion(self, cx: CcContext, event: CongestionEvent) -> None:
        """Congestion was signalled.

        Reduce only when `event.first_in_epoch`: one episode of losses asks for one reduction. A
        timeout (`event.cause == "timeout"`) restarts the window in any case.
        """
        raise NotImplementedError

    def on_sent(self, cx: CcContext, size: int) -> None:
        """`size` bytes of data, new or repeated, are about to leave."""

    def on_epoch_end(self, cx: CcContext) -> None:
        """The episode is over: all that was outstanding when it began has been acknowledged."""

    def on_spurious(self, cx: CcContext) -> None:
        """The last reduction was unfounded: restore what it took."""

    def on_path(self, cx: CcContext, event: PathEvent) -> None:
        """Something happened to the path, or the sender resumes after a pause."""

    def variables(self) -> dict[str, float]:
        """Internal variables by name for tables and figures, read when a sample is taken.

        Column `cc.NAME` of `samples` has them. A name ends with its unit, as in `min_rtt_ms`; it
        has small letters, digits and underscores, at most 32.
        """
        return {}

    @property
    def in_slow_start(self) -> bool:
        """Whether the window is below the threshold."""
        return self.ssthresh is None or self.cwnd < self.ssthresh

    @staticmethod
    def may_grow(cx: CcContext, ack: AckEvent) -> bool:
        """Whether Linux would let the window grow.

        That is where the acknowledgement moves forward, or delivers anything on a path that
        reorders, no episode is lowering the window, and the window has held the sender back lately
        (`tcp_may_raise_cwnd`, `tcp_is_cwnd_limited`).
        """
        news = ack.acked if ack.any_order else ack.cum_acked
        return cx.cwnd_limited and news > 0 and cx.state not in _LOWERING


_LOWERING = ("recovery", "cwr")
_REQUIRED = {"on_ack": "self, cx, ack", "on_congestion": "self, cx, event"}
_OPTIONAL = {
    "on_sent": "self, cx, size",
    "on_epoch_end": "self, cx",
    "on_spurious": "self, cx",
    "on_path": "self, cx, event",
    "variables": "self",
}


class LoadError(Exception):
    """Why a class cannot be a controller, in one line."""


def load(
    file: str, text: str, name: str, parameters: Sequence[tuple[str, str]] = ()
) -> type[CongestionControl]:
    """The class `name` of a file with this text, with its parameters set.

    The text is executed anew each time, so that nothing that one run leaves in the module or in the
    class reaches another.

    Raises:
        LoadError: the text cannot be executed, or has no such class, method or parameter.
    """
    module = ModuleType(Path(file).stem)
    module.__file__ = file
    try:
        exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the user's own file
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise LoadError(error_text(error, file)) from None
    found = vars(module).get(name)
    if not isinstance(found, type):
        raise LoadError(f"{file} has no class '{name}'; {_classes(module)}")
    if not issubclass(found, CongestionControl):
        raise LoadError(f"{file}: {name} is not derived from weir.CongestionControl")
    _check_methods(found, file)
    values = {key: _parameter(found, key, value, file) for key, value in parameters}
    return type(name, (found,), {"__module__": found.__module__, **values}) if values else found


def error_text(error: BaseException, file: str) -> str:
    """Returns an error in `file` as one line: place, function, exception."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{file}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.walk_tb(error.__traceback__)
    own = [(frame, line) for frame, line in frames if frame.f_code.co_filename == file]
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if not own:
        return f"{file}: {what}"
    frame, line = own[-1]
    inside = frame.f_code.co_name
    where = "" if inside == "<module>" else f", in {inside}"
    return f"{file}, line {line}{where}: {what}"


def place(controller: CongestionControl, method: str, file: str) -> str:
    """Where `method` of a controller begins."""
    code = getattr(getattr(type(controller), method, None), "__code__", None)
    if code is None or code.co_filename != file:
        return f"{file}, after {method}"
    return f"{file}, line {code.co_firstlineno}, after {method}"


def _classes(module: ModuleType) -> str:
    named = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, CongestionControl)
        and value is not CongestionControl
    ]
    return f"there are: {', '.join(named)}" if named else "it has no controller at all"


def _check_methods(found: type[CongestionControl], file: str) -> None:
    for method, arguments in {**_REQUIRED, **_OPTIONAL}.items():
        defined = getattr(found, method)
        if method in _REQUIRED and defined is getattr(CongestionControl, method):
            raise LoadError(f"{file}: {found.__name__} has no method {method}({arguments})")
        try:
            inspect.signature(defined).bind(*arguments.split(", "))
        except (TypeError, ValueError):
            raise LoadError(
                f"{file}: {found.__name__}.{method} has other arguments than ({arguments})"
            ) from None


def _parameter(found: type[CongestionControl], key: str, text: str, file: str) -> object:
    """The value of a parameter, of the same type as the attribute of the class."""
    own = {
        name: value
        for base in reversed(found.__mro__)
        if base not in (CongestionControl, object)
        for name, value in vars(base).items()
        if not name.startswith("_") and isinstance(value, (bool, int, float, str))
    }
    if key not in own:
        known = f"there are: {', '.join(own)}" if own else "it has none"
        raise LoadError(f"{file}: {found.__name__} has no parameter '{key}'; {known}")
    wanted = type(own[key])
    if wanted is str:
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    if wanted is float and type(value) is int:
        value = float(value)
    if type(value) is not wanted:
        raise LoadError(
            f"{file}: {found.__name__}: {key} = '{text}' is not allowed; it is of type "
            f"{wanted.__name__}, as {own[key]!r} is"
        )
    return value

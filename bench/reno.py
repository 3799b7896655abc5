"""A controller in Python: Reno as crates/cc/src/reno.rs has it, statement by statement.

The benchmark and the tests read this file like any other.
"""

from __future__ import annotations

import weir
from weir.controllers.congestion import AckEvent, CcContext, CongestionEvent, PathEvent


class Reno(weir.CongestionControl):
    """RFC 5681 as Linux counts: slow start, additive increase, halving, undo, idle restart."""

    cwnd: int
    ssthresh: int | None = None

    def start(self) -> None:
        """Nothing is acknowledged yet, and nothing to be undone."""
        self.credit = 0
        self.checkpoint: tuple[int, int | None] | None = None

    def on_ack(self, cx: CcContext, ack: AckEvent) -> None:
        """Slow start up to the threshold, then a segment per window."""
        if not self.may_grow(cx, ack):
            return
        beyond = ack.acked
        if self.in_slow_start:
            target = self.cwnd + beyond
            if self.ssthresh is not None:
                target = min(target, self.ssthresh)
            beyond -= target - self.cwnd
            self.cwnd = target
        if beyond > 0:
            self.increase(cx.mss, beyond)

    def increase(self, mss: int, acked: int) -> None:
        """One segment for every window acknowledged, with the remainder kept."""
        per = self.cwnd
        if self.credit >= per:
            self.credit = 0
            self.cwnd += mss
        segments, self.credit = divmod(self.credit + acked, per)
        self.cwnd += mss * segments

    def on_congestion(self, cx: CcContext, event: CongestionEvent) -> None:
        """Half the window, in whole segments; after a timeout one above what is in flight."""
        timeout = event.cause == "timeout"
        if event.first_in_epoch:
            undoable = event.cause != "ecn_echo"
            self.checkpoint = (self.cwnd, self.remembered(cx.mss)) if undoable else None
            self.ssthresh = max(self.cwnd // 2 // cx.mss * cx.mss, 2 * cx.mss)
            self.cwnd = self.ssthresh
        if timeout:
            self.cwnd = cx.bytes_in_flight + cx.mss
        if timeout or event.first_in_epoch:
            self.credit = 0

    def on_spurious(self, cx: CcContext) -> None:  # noqa: ARG002 - all that it needs it remembers
        """Takes the last reduction back."""
        if self.checkpoint is None:
            return
        cwnd, ssthresh = self.checkpoint
        self.checkpoint = None
        self.cwnd = max(self.cwnd, cwnd)
        if ssthresh is None or self.ssthresh is None:
            self.ssthresh = None
        else:
            self.ssthresh = max(self.ssthresh, ssthresh)

    def on_path(self, cx: CcContext, event: PathEvent) -> None:
        """Halves for every timeout that passed in silence (RFC 5681 §4.1)."""
        if event.kind != "idle_restart" or event.idle_ns is None or event.rto_ns is None:
            return
        restart = min(self.initial_window, self.cwnd)
        self.ssthresh = self.remembered(cx.mss)
        idle = event.idle_ns
        while idle > event.rto_ns > 0 and self.cwnd > restart:
            idle -= event.rto_ns
            self.cwnd = self.cwnd // 2 // cx.mss * cx.mss
        self.cwnd = max(self.cwnd, restart)

    def remembered(self, mss: int) -> int | None:
        """The threshold, and three quarters of the window at least."""
        if self.ssthresh is None:
            return None
        segments = self.cwnd // mss
        return max(self.ssthresh, mss * (segments // 2 + segments // 4))

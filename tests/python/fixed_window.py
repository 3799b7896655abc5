"""Controllers that break criteria on purpose, for the tests of `weir conform`."""

from typing import Any

import weir


class FixedWindow(weir.CongestionControl):
    """Never reacts to congestion, as no standard allows."""

    segments = 400

    def on_ack(self, cx: Any, ack: Any) -> None:  # noqa: ARG002
        self.cwnd = self.segments * cx.mss

    def on_congestion(self, cx: Any, event: Any) -> None:  # noqa: ARG002
        self.cwnd = self.segments * cx.mss


class Frozen(weir.CongestionControl):
    """Never grows after the first loss, as the bug of cloudflare/quiche#2370 made CUBIC."""

    has_lost = False

    def on_ack(self, cx: Any, ack: Any) -> None:
        if not self.has_lost and self.may_grow(cx, ack):
            self.cwnd += ack.acked

    def on_congestion(self, cx: Any, event: Any) -> None:
        self.has_lost = True
        if event.first_in_epoch:
            self.cwnd = max(self.cwnd // 2, 2 * cx.mss)

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

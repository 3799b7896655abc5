"""Public bugs of other stacks as controllers, for suite `regressions`: each broken, or mended."""

from typing import Any

import weir


class QuicheEpoch(weir.CongestionControl):
    """cloudflare/quiche#2370: CUBIC's epoch moves whenever data is sent into an empty pipe.

    By the time since the last transmission, which includes the round trip of the data before. A
    flow whose every round empties the pipe stays at the begin of its curve. Mended, it moves by
    the time since the last acknowledgement.
    """

    mended = False

    def start(self) -> None:
        self.epoch_ns = self.acked_ns = self.sent_ns = 0
        self.w_max = 0.0

    def on_sent(self, cx: Any, size: int) -> None:  # noqa: ARG002
        if cx.bytes_in_flight == 0 and self.epoch_ns:
            self.epoch_ns += cx.now_ns - (self.acked_ns if self.mended else self.sent_ns)
        self.sent_ns = cx.now_ns

    def on_ack(self, cx: Any, ack: Any) -> None:
        self.acked_ns = cx.now_ns
        if not self.may_grow(cx, ack):
            return
        if self.in_slow_start:
            self.cwnd += ack.acked
            return
        self.epoch_ns = self.epoch_ns or cx.now_ns
        k_s = (self.w_max * 0.3 / 0.4 / cx.mss) ** (1 / 3)
        time_s = (cx.now_ns - self.epoch_ns) / 1e9 - k_s
        self.cwnd = max(self.cwnd, int(self.w_max + 0.4 * time_s**3 * cx.mss))

    def on_congestion(self, cx: Any, event: Any) -> None:
        if event.first_in_epoch:
            self.w_max, self.epoch_ns = self.cwnd, 0
            self.ssthresh = self.cwnd = max(int(0.7 * self.cwnd), 2 * cx.mss)


class QuicheIdle(QuicheEpoch):
    """cloudflare/quiche#2370: idle time counts for CUBIC's curve, which jumps after it."""

    def on_sent(self, cx: Any, size: int) -> None:
        if self.mended:
            super().on_sent(cx, size)


class NoqPacing(weir.CongestionControl):
    """noq#800: a sender that its application limits keeps the pacing rate of before the first RTT.

    That is 2.77 initial windows per millisecond.
    """

    mended = False

    def start(self) -> None:
        self.pacing_rate_bps = 2.77 * self.initial_window * 8 / 1e-3

    def on_ack(self, cx: Any, ack: Any) -> None:  # noqa: ARG002
        if self.mended and cx.srtt_ns:
            self.pacing_rate_bps = 2.77 * self.initial_window * 8 / (cx.srtt_ns / 1e9)

    def on_congestion(self, cx: Any, event: Any) -> None:
        pass


class NoqJitter(weir.CongestionControl):
    """noq#819: with jitter the window is the BDP of the smallest RTT, which limits the rate."""

    mended = False

    def start(self) -> None:
        self.rate_bps = 0

    def on_ack(self, cx: Any, ack: Any) -> None:
        self.rate_bps = max(self.rate_bps, ack.delivery_rate_bps or 0)
        bdp = self.rate_bps * (cx.min_rtt_ns or 0) / 8e9
        self.cwnd = max((3 if self.mended else 1) * bdp, self.initial_window)

    def on_congestion(self, cx: Any, event: Any) -> None:
        pass


class NoqInflightAtLoss(weir.CongestionControl):
    """noq#768, moq#3536: what was in flight at a loss wraps around if the prefix lost too much."""

    mended = False

    def start(self) -> None:
        self.inflight_longterm = 0

    def variables(self) -> dict[str, float]:
        return {"inflight_longterm_bytes": self.inflight_longterm} if self.inflight_longterm else {}

    def on_ack(self, cx: Any, ack: Any) -> None:
        if self.may_grow(cx, ack):
            self.cwnd += ack.acked if self.in_slow_start else cx.mss * ack.acked // int(self.cwnd)
        if ack.lost > cx.mss:
            before, lost = ack.prior_in_flight - cx.mss, ack.lost - cx.mss
            tolerated = (before * 2 // 100 - lost) * 100 // 98
            found = before + max(tolerated, 0) if self.mended else before + tolerated % 2**64
            self.inflight_longterm = max(self.inflight_longterm, found)

    def on_congestion(self, cx: Any, event: Any) -> None:
        if event.first_in_epoch:
            self.ssthresh = self.cwnd = max(self.cwnd // 2, 2 * cx.mss)


class QuicheProbeRtt(weir.CongestionControl):
    """cloudflare/quiche#2698: PROBE_RTT ends when what is in flight is at most half the BDP.

    The window is at least four segments, so that a path with less never gets there.
    """

    mended = False

    def start(self) -> None:
        self.phase, self.begun_ns, self.small_ns = "startup", 0, 0
        self.cwnd = 8 * self.mss

    def on_ack(self, cx: Any, ack: Any) -> None:
        rate_bps = ack.delivery_rate_bps or 0
        half = rate_bps * cx.min_rtt_ns / 8e9 / 2 if cx.min_rtt_ns else 0
        if self.phase != "probe_rtt":
            if cx.now_ns - self.begun_ns > 10e9:
                self.phase, self.cwnd, self.small_ns = "probe_rtt", max(half, 4 * self.mss), 0
            return
        floor = max(half, 4 * self.mss) if self.mended else half
        if not self.small_ns and cx.bytes_in_flight <= floor:
            self.small_ns = cx.now_ns
        if self.small_ns and cx.now_ns - self.small_ns > 200e6:
            self.phase, self.cwnd, self.begun_ns = "probe_bw", 8 * self.mss, cx.now_ns

    def on_congestion(self, cx: Any, event: Any) -> None:
        pass


class PicoquicShortRtt(weir.CongestionControl):
    """picoquic#2118: an RTT below 128 us counts as none, so that the window stays at 5 packets."""

    def on_ack(self, cx: Any, ack: Any) -> None:
        has_rtt = cx.min_rtt_ns and cx.min_rtt_ns // 128_000 > 0
        self.cwnd = self.cwnd + ack.acked if has_rtt else 5 * self.mss

    def on_congestion(self, cx: Any, event: Any) -> None:
        pass


class SegmentPerRtt(weir.CongestionControl):
    """picoquic#1697: after a radio link was suspended the window grows by a segment per RTT.

    moq#2432: with loss-based control a live source above the link's rate fills the queue.
    """

    def on_ack(self, cx: Any, ack: Any) -> None:
        if self.may_grow(cx, ack):
            self.cwnd += ack.acked if self.in_slow_start else cx.mss * ack.acked // int(self.cwnd)

    def on_congestion(self, cx: Any, event: Any) -> None:
        if event.first_in_epoch:
            self.ssthresh = max(self.cwnd // 2, 2 * cx.mss)
            self.cwnd = cx.mss if event.cause == "timeout" else self.ssthresh


class NeqoSlowStartExit(weir.CongestionControl):
    """mozilla/neqo#3162: the loss that ends slow start reduces the window by CUBIC's 0.7 only.

    Slow start overshoots by up to a factor of two, so that two more losses follow at once. Mended,
    the factor is the 0.4 with which the report has one loss.
    """

    mended = False

    def on_ack(self, cx: Any, ack: Any) -> None:
        if self.may_grow(cx, ack):
            self.cwnd += ack.acked if self.in_slow_start else cx.mss * ack.acked // int(self.cwnd)

    def on_congestion(self, cx: Any, event: Any) -> None:
        if event.first_in_epoch:
            factor = 0.4 if self.mended and self.in_slow_start else 0.7
            self.ssthresh = self.cwnd = max(int(factor * self.cwnd), 2 * cx.mss)


class QuichePersistent(weir.CongestionControl):
    """cloudflare/quiche#2680: losing everything for seconds is answered as one lost packet is."""

    mended = False

    def on_ack(self, cx: Any, ack: Any) -> None:
        if self.may_grow(cx, ack):
            self.cwnd += ack.acked if self.in_slow_start else cx.mss * ack.acked // int(self.cwnd)

    def on_congestion(self, cx: Any, event: Any) -> None:
        if event.first_in_epoch:
            self.ssthresh = self.cwnd = max(self.cwnd // 2, 2 * cx.mss)
        if self.mended and event.cause == "timeout":
            self.cwnd = cx.mss


class PicoquicFullPipe(weir.CongestionControl):
    """picoquic#839: rounds in which the application had little to send count for the full pipe.

    STARTUP then ends at the rate of the application, and no probe finds a higher one.
    """

    mended = False

    def start(self) -> None:
        self.rate_bps = self.full_bps = 0
        self.rounds, self.round, self.is_full = 0, -1, False

    def on_ack(self, cx: Any, ack: Any) -> None:
        self.rate_bps = max(self.rate_bps, ack.delivery_rate_bps or 0)
        if ack.round != self.round and not (self.mended and ack.rate_app_limited):
            self.round = ack.round
            self._on_round()
        self.pacing_rate_bps = (1 if self.is_full else 2.77) * self.rate_bps or None
        bdp = self.rate_bps * (cx.min_rtt_ns or 0) / 8e9
        self.cwnd = max((2 if self.is_full else 2.77) * bdp, self.initial_window)

    def _on_round(self) -> None:
        if self.rate_bps >= 1.25 * self.full_bps:
            self.full_bps, self.rounds = self.rate_bps, 0
            return
        self.rounds += 1
        self.is_full = self.is_full or self.rounds >= 3

    def on_congestion(self, cx: Any, event: Any) -> None:
        pass


class MsquicMinRtt(weir.CongestionControl):
    """msquic#6118: the smallest RTT is 2**64 - 1 until there is one, and 2**32 - 1 is tested for.

    So the window of the first acknowledgements is the BDP of an endless round trip.
    """

    mended = False

    def start(self) -> None:
        self.min_rtt_us = 2**64 - 1

    def on_ack(self, cx: Any, ack: Any) -> None:  # noqa: ARG002
        if ack.rtt_ns:
            self.min_rtt_us = min(self.min_rtt_us, ack.rtt_ns // 1000)
        if self.min_rtt_us == (2**64 - 1 if self.mended else 2**32 - 1):
            return
        bdp = (ack.delivery_rate_bps or 0) * self.min_rtt_us / 8e6
        self.cwnd = min(max(2 * bdp, self.cwnd), 2**40)

    def on_congestion(self, cx: Any, event: Any) -> None:
        pass


class Ngtcp2Undo(weir.CongestionControl):
    """ngtcp2#2011: what BBR has learned from a loss stays when the loss proves unfounded."""

    mended = False

    def start(self) -> None:
        self.phase = "probe_bw_cruise"
        self.shortterm = self.longterm = 0
        self.prior: float = self.initial_window

    def variables(self) -> dict[str, float]:
        known = {
            "cwnd_prior_bytes": self.prior,
            "inflight_shortterm_bytes": self.shortterm,
            "inflight_longterm_bytes": self.longterm,
        }
        return {name: value for name, value in known.items() if value}

    def on_ack(self, cx: Any, ack: Any) -> None:  # noqa: ARG002
        self.cwnd = min(self.cwnd + ack.acked, self.shortterm or 32 * self.mss)

    def on_congestion(self, cx: Any, event: Any) -> None:
        if not event.first_in_epoch:
            return
        self.prior = self.cwnd
        self.longterm = max(event.prior_in_flight, cx.mss)
        self.shortterm = self.cwnd = max(int(0.7 * self.cwnd), 4 * cx.mss)

    def on_spurious(self, cx: Any) -> None:  # noqa: ARG002
        if self.mended:
            self.shortterm = self.longterm = 0
            self.cwnd = self.prior

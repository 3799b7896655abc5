"""An advice in words, and the commands to follow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir.advice.choices import KERNEL, LIMITED_BY_WINDOW
from weir.advice.predictions import Prediction
from weir.base.grid import number
from weir.estimates.path import Path
from weir.modelling.measured import Flow, Measurement

_SPOKEN = {"bbr": "BBR", "cubic": "CUBIC", "htcp": "H-TCP", "bbr2": "BBRv2", "bbr3": "BBRv3"}


def display_name(name: str) -> str:
    """A controller as people write it."""
    first, comma, rest = name.partition(",")
    bare = first.removeprefix("rack/")
    return f"{_SPOKEN.get(bare, bare.capitalize())}{comma}{rest}"


def best(found: Sequence[Prediction]) -> Prediction:
    """The option with the least delay among those with nearly the most goodput.

    An option that takes more than half of a neighbour's goodput is passed over. Of the rest, those
    that Linux has come first: one command is enough for them.
    """
    fair = [one for one in found if one.neighbour is None or one.neighbour >= _FAIR] or found
    most = max(one.gain.value for one in fair)
    close = [one for one in fair if one.gain.value >= _CLOSE * most]
    close = [one for one in close if one.option.stack in KERNEL] or close
    return min(close, key=lambda one: one.rtt_ms_p95.value)


def sentence(measured: Measurement, flow: Flow, found: Sequence[Prediction]) -> str:
    """The advice in one sentence."""
    chosen = best(found)
    now = next(one for one in found if one.option.name == flow.stack.removeprefix("rack/"))
    delay = chosen.rtt_ms_p95.value - now.rtt_ms_p95.value
    high = chosen.gain.high or chosen.gain.value
    is_faster = chosen.gain.low > 1 and chosen.gain.value >= _RELEVANT
    is_shorter = delay < -_RELEVANT_MS and chosen.gain.value >= _CLOSE
    if chosen is now or not (is_faster or is_shorter):
        has_settings = any(one.option.setting.name for one in found)
        nothing = "Nothing that was tried" if has_settings else "No other controller"
        return (
            f"{nothing} gets more than {display_name(now.option.name)} here; because "
            f"{_obstacle(flow, measured.path)}."
        )
    mean, least, most = (number(x, 2) for x in (chosen.gain.value, chosen.gain.low, high))
    gain = f"{mean} × ({least} to {most}) the goodput"
    what = f"{display_name(chosen.option.name)} instead of {display_name(now.option.name)}: {gain}"
    reason = _reason(flow, measured.path) if is_faster else _delay_reason(measured.path)
    return f"{what}, {delay:+.0f} ms at the 95th percentile of the RTT; because {reason}."


def commands(chosen: Prediction) -> Iterator[str]:
    """How to use an option."""
    stack = chosen.option.stack
    yield from chosen.option.setting.commands
    if stack in KERNEL:
        if stack not in ("cubic", "reno"):
            yield f"sudo modprobe tcp_{stack}"
        yield f"sudo sysctl -w net.ipv4.tcp_congestion_control={stack}"
    yield f"weir send FILE HOST:PORT --stack {stack}"
    crate = "weir_noq" if stack in ("bbr", "bbr2", "bbr3") else "weir_quinn"
    yield (
        "transport.congestion_controller_factory("
        f'Arc::new({crate}::Controllers::new("{stack}", seed)?));'
    )


def _reason(flow: Flow, path: Path) -> str:
    if flow.limit in LIMITED_BY_WINDOW:
        return _obstacle(flow, path)
    if path.policer_mbps:
        return f"a policer drops what exceeds {number(path.policer_mbps.value)} Mbit/s"
    if path.discipline:
        return f"the queue drops packets early, like {path.discipline}"
    if path.loss.low > 0:
        return f"{number(path.loss.value * 100, 2)} % of packets are lost at random"
    if path.reorder:
        return f"{number(path.reorder.value * 100, 2)} % of packets arrive after later ones"
    packets, times = path.queue_bytes.value / path.packet_bytes, number(_in_bdp(path), 2)
    return f"the queue holds {packets:.0f} packets, {times} times what the path does"


def _delay_reason(path: Path) -> str:
    if path.discipline:
        return f"the queue is managed, like {path.discipline}"
    wait = path.queue_bytes.value * 8e-3 / path.rate_mbps.value
    return f"the queue is {wait:.0f} ms long when it is full"


def _obstacle(flow: Flow, path: Path) -> str:
    reasons = {
        "application": "the application sends no faster",
        "receiver-window": "the receiver's window limits it",
        "send-buffer": "the send buffer limits it",
        "path-capacity": f"the path carries {number(path.rate_mbps.value)} Mbit/s and is full",
        "policer": "a policer drops what exceeds its rate",
        "slow-start": "the transfer ends before the window is large",
    }
    return reasons.get(
        flow.limit, f"it already uses the path well ({number(_in_bdp(path), 2)} BDP queue)"
    )


def _in_bdp(path: Path) -> float:
    bdp = path.rate_mbps.value * 1e6 / 8 * path.delay_ms.value / 1e3
    return path.queue_bytes.value / bdp if bdp else 0.0


_CLOSE = 0.95
_FAIR = 0.5
_RELEVANT = 1.02
_RELEVANT_MS = 1.0

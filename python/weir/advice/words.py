"""An advice in words, and the commands to follow it."""

from __future__ import annotations

from collections.abc import Iterator

from weir.advice.choices import KERNEL, LIMITED_BY_WINDOW
from weir.advice.decision import Decision, Verdict, gain
from weir.advice.predictions import Prediction
from weir.base.grid import number
from weir.estimates.path import Path
from weir.estimates.quantity import Quantity
from weir.modelling.measured import Flow, Measurement

_UNHARMED = 0.8
"""A neighbour that keeps this share of its goodput or more needs no word."""
_SPOKEN = {"bbr": "BBR", "cubic": "CUBIC", "htcp": "H-TCP", "bbr2": "BBRv2", "bbr3": "BBRv3"}


def display_name(name: str) -> str:
    """A controller as people write it."""
    first, comma, rest = name.partition(",")
    bare = first.removeprefix("rack/")
    return f"{_SPOKEN.get(bare, bare.capitalize())}{comma}{rest}"


def sentence(measured: Measurement, flow: Flow, decision: Decision) -> str:
    """The advice in one sentence, and one more on an option that gains more but does harm."""
    chosen, now = decision.chosen, decision.now
    if chosen is None or decision.verdict is Verdict.NONE:
        has_settings = any(one.option.setting.name for one in decision.found)
        nothing = "Nothing that was tried" if has_settings else "No other controller"
        what = f"{nothing} probably gets more than {display_name(now.option.name)} here"
        return f"{what}{_best_of_rest(decision)}; because {_obstacle(flow, measured.path)}."
    what = f"{display_name(chosen.option.name)} instead of {display_name(now.option.name)}"
    facts = f"{_gain(chosen, now)}{_delay(chosen, now)}{_harm(chosen)}"
    if decision.verdict is Verdict.INCONCLUSIVE:
        why = _open_question(measured, chosen)
        return f"Inconclusive: {what} is likely {facts}; {why}.{_more(decision)}"
    is_faster = decision.verdict is Verdict.FASTER
    reason = _reason(flow, measured.path) if is_faster else _delay_reason(measured.path)
    because = "" if chosen.runs else f"; because {reason}"
    return f"{what}: {facts}{because}.{_more(decision)}"


def commands(decision: Decision) -> Iterator[str]:
    """How to use what is advised, or to find out; nothing if nothing helps."""
    chosen = decision.chosen
    if chosen is None:
        return
    if decision.verdict is Verdict.INCONCLUSIVE:
        yield from _experiment(decision, chosen)
        return
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


def _experiment(decision: Decision, chosen: Prediction) -> Iterator[str]:
    """A path test that measures the likely option next to the one in use."""
    stacks = [decision.now.option.stack, chosen.option.stack]
    if decision.harmful:
        stacks.append(decision.harmful.option.stack)
    stacks = list(dict.fromkeys(stack.removeprefix("rack/") for stack in stacks))
    ours = [f"--stack rack/{stack}" for stack in stacks if stack not in KERNEL]
    kernels = ",".join(stack for stack in stacks if stack in KERNEL)
    words = [*([f"--cc {kernels}"] if kernels else []), *ours]
    yield f"weir test HOST {' '.join(words)} --repeat {_REPEATS}"


def _gain(one: Prediction, now: Prediction) -> str:
    quantity = one.gain or Quantity(1.0, 1.0, 1.0)
    text = f"{number(quantity.value, 2)} × {_interval(quantity)}the goodput"
    if not one.runs or one.goodput_mbps is None or now.goodput_mbps is None:
        return text
    own, other = (number(x.goodput_mbps.value) for x in (one, now) if x.goodput_mbps)
    runs = "one run each" if one.runs == 1 else f"{one.runs} runs each"
    return f"{text} as measured on the path ({own} against {other} Mbit/s, {runs})"


def _interval(quantity: Quantity) -> str:
    if quantity.high is None or quantity.is_unbounded:
        return ""
    return f"({number(quantity.low, 2)} to {number(quantity.high, 2)}) "


def _delay(one: Prediction, now: Prediction) -> str:
    if one.rtt_ms_p95 is None or now.rtt_ms_p95 is None:
        return ""
    change = one.rtt_ms_p95.value - now.rtt_ms_p95.value
    return f", {change:+.0f} ms at the 95th percentile of the RTT"


def _harm(one: Prediction) -> str:
    if one.neighbour is None or one.neighbour >= _UNHARMED:
        return ""
    return (
        f", but a CUBIC flow next to it gets only {number(one.neighbour, 2)} of what it gets next "
        "to CUBIC"
    )


def _more(decision: Decision) -> str:
    """The option that gains more and harms a neighbour, with both figures."""
    one = decision.harmful
    if one is None or one.gain is None:
        return ""
    likely = "gains" if decision.verdict is Verdict.FASTER else "is likely to gain"
    return (
        f" {display_name(one.option.name)} {likely} more, {number(one.gain.value, 2)} × "
        f"{_interval(one.gain)}".rstrip()
        + f"{_harm(one)}."
    )


def _best_of_rest(decision: Decision) -> str:
    """What the best of the others gets, if it may be more for all that is known."""
    others = [one for one in decision.found if one is not decision.now and one.gain]
    best = max(others, key=gain, default=None)
    if best is None or best.gain is None or gain(best) <= 1 or best.gain.is_unbounded:
        return ""
    value = f"{number(best.gain.value, 2)} × {_interval(best.gain)}".rstrip()
    return f" ({display_name(best.option.name)} comes nearest, {value})"


def _open_question(measured: Measurement, chosen: Prediction) -> str:
    """What is not known well enough, and how to find out."""
    path, unknown = measured.path, []
    if chosen.runs:
        count = "once" if chosen.runs == 1 else f"{chosen.runs} times"
        return f"it was measured {count}, and runs vary more than that shows; repeat the test"
    if path.rate_mbps.high is None:
        unknown.append(f"the rate only as at least {number(path.rate_mbps.value)} Mbit/s")
    if path.queue_bytes.high is None:
        unknown.append(f"the queue only as at least {number(path.queue_bytes.value / 1e3)} kB")
    if path.loss.value > 0 and path.loss.high:
        low, high = number(path.loss.low * 100, 2), number(path.loss.high * 100, 2)
        unknown.append(f"the random loss only as {low} to {high} %")
    what = f"the capture shows {', '.join(unknown)}" if unknown else "the predictions vary"
    return f"{what}; a path test of both, or a longer capture, shows which holds"


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
    return f"the queue holds {_queue(path)}"


def _queue(path: Path) -> str:
    packets = f"{path.queue_bytes.value / path.packet_bytes:.0f} packets"
    if path.queue_bytes.high is None:
        return f"at least {packets}"
    return f"{packets}, {number(_in_bdp(path), 2)} times what the path does"


def _delay_reason(path: Path) -> str:
    if path.discipline:
        return f"the queue is managed, like {path.discipline}"
    wait = path.queue_bytes.value * 8e-3 / path.rate_mbps.value
    least = "at least " if path.queue_bytes.high is None else ""
    return f"the queue is {least}{wait:.0f} ms long when it is full"


def _obstacle(flow: Flow, path: Path) -> str:
    least = "at least " if path.rate_mbps.high is None else ""
    reasons = {
        "application": "the application sends no faster",
        "receiver-window": "the receiver's window limits it",
        "send-buffer": "the send buffer limits it",
        "path-capacity": f"the path carries {least}{number(path.rate_mbps.value)} Mbit/s and is "
        "full",
        "policer": "a policer drops what exceeds its rate",
        "slow-start": "the transfer ends before the window is large",
    }
    if flow.limit in reasons:
        return reasons[flow.limit]
    used = flow.goodput_mbps / path.rate_mbps.value
    if path.rate_mbps.high is not None and used >= _WELL:
        return f"it uses {used:.0%} of the {number(path.rate_mbps.value)} Mbit/s of the path"
    return "what limits it on this path limits the others too"


def _in_bdp(path: Path) -> float:
    bdp = path.rate_mbps.value * 1e6 / 8 * path.delay_ms.value / 1e3
    return path.queue_bytes.value / bdp if bdp else 0.0


_REPEATS = 3
_WELL = 0.8

"""What the literature expects at given loss rates, and whether ours agree."""

from __future__ import annotations

from collections.abc import Iterator

from weir.stats import Estimate
from weir.studies import Cell
from weir.studies.cells import Cells
from weir.studies.claims import claim, ratio
from weir.studies.random_loss.laws import ceiling
from weir.studies.random_loss.measures import GOODPUT, percent_of

_CLOSE = 0.15
"""As close to a law as a measurement comes that follows it: the laws know no timeouts, no handshake
and no growth between losses that is rounded to whole segments."""

_BBR_FULL = 0.9
_BBR_STILL = 0.5
_STALLED = 0.02


def claims(cells: Cells) -> Iterator[Cell]:
    """Those whose control and loss rate were run."""
    own = cells.table(GOODPUT)
    yield from _laws(own)
    yield from _bbr(own)
    yield from _cubic(own)
    yield from _others(own)


def _laws(own: Cells) -> Iterator[Cell]:
    for stack, name in (("reno", "Mathis et al. 1997"), ("cubic", "RFC 9438 §5.1")):
        for place in own.columns():
            found = own.at(stack, place)
            if found is None or found["published"] is None or not 0.03 <= percent_of(place) <= 1:
                continue
            ours = own.ours(stack, place)
            share = _over(ours, found["published"])
            says = f"{stack} at {place} loss has the goodput of its law ({name})"
            holds = None if share.mean is None else abs(share.mean - 1) <= _CLOSE
            yield claim(says, "goodput over the law", share, holds, published=1.0)


def _bbr(own: Cells) -> Iterator[Cell]:
    for place in own.columns():
        percent = percent_of(place)
        share = _over(own.ours("bbr", place), ceiling(percent / 100))
        if share.mean is None or percent > 15:
            continue
        full = percent <= 5
        least = _BBR_FULL if full else _BBR_STILL
        amount = "fills what losses leave" if full else "is still close to what losses leave"
        says = f"BBR at {place} loss {amount} of the link (Cardwell et al. 2016, figure 8)"
        yield claim(says, "goodput over what is left", share, share.mean >= least, published=1.0)


def _cubic(own: Cells) -> Iterator[Cell]:
    for place, most, says in (
        ("0.1%", 0.2, "CUBIC has lost a factor of ten at 0.1 %"),
        ("1%", 0.05, "CUBIC is close to a standstill at 1 %"),
        ("5%", _STALLED, "CUBIC stands still at 5 %"),
    ):
        share = _over(own.ours("cubic", place), ceiling(0.0))
        if share.mean is not None:
            yield claim(
                f"{says} (Cardwell et al. 2016, figure 8)",
                "goodput over the link's",
                share,
                share.mean <= most,
            )


def _others(own: Cells) -> Iterator[Cell]:
    for stack, source in (("veno", "Fu and Liew 2003"), ("westwood", "Mascolo et al. 2001")):
        gain = ratio(own.ours(stack, "1%"), own.ours("reno", "1%"))
        if gain.mean is not None:
            says = f"{stack} gets more than Reno at 1 % random loss ({source})"
            yield claim(says, f"goodput of {stack} over Reno's", gain, gain.mean > 1)


def _over(ours: Estimate, base: float) -> Estimate:
    mean, low, high = (None if v is None else v / base for v in (ours.mean, ours.lo, ours.hi))
    return Estimate(mean, low, high, ours.n)

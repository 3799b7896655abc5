"""What the Pantheon's authors and others say of such paths, and whether ours agree."""

from __future__ import annotations

from collections.abc import Iterator

from weir.stats import Estimate
from weir.studies import Cell
from weir.studies.cells import Cells
from weir.studies.claims import claim, ratio
from weir.studies.pantheon.measures import DELAY, OVERALL, THROUGHPUT, USED, table
from weir.studies.pantheon.paths import PATHS

_TITLES = {path.number: path.title for path in PATHS}

_CELLULAR = (2, 3)
_POLICERS = (7, 8, 9, 10, 11, 12)
_HALF_BDP, _FULL_BDP = 17, 18
_KOREA = 5


def claims(cells: Cells) -> Iterator[Cell]:
    """Those whose schemes were run."""
    throughput, delay = cells.table(table(THROUGHPUT, 1)), cells.table(table(DELAY, 1))
    used = cells.table(table(USED, 1))
    yield from _deep_queues(delay)
    yield from _one_packet(used)
    yield from _lossy(throughput)
    yield from _buffers(used, delay)
    yield from _overall(cells)


def _deep_queues(delay: Cells) -> Iterator[Cell]:
    for number in _CELLULAR:
        path = _TITLES[number]
        for gentle in ("vegas", "bbr", "copa"):
            more = ratio(delay.ours(path, "cubic"), delay.ours(path, gentle))
            if more.mean is not None:
                yield claim(
                    f"{gentle} keeps the deep queue of path {number} shorter than CUBIC "
                    "(Yan et al. 2018)",
                    f"P95 delay of CUBIC over that of {gentle}",
                    more,
                    _above(more, 1.0),
                )


def _one_packet(used: Cells) -> Iterator[Cell]:
    """A queue of one packet takes no two in a row: pacing decides, not the window."""
    for number in _POLICERS:
        more = ratio(used.ours(_TITLES[number], "bbr"), used.ours(_TITLES[number], "cubic"))
        if more.mean is not None:
            yield claim(
                f"BBR, which paces, uses more of path {number} with its queue of one packet than "
                "CUBIC, which sends in bursts (Cardwell et al. 2016)",
                "utilisation by BBR over that by CUBIC",
                more,
                _above(more, 1.0),
            )


def _lossy(throughput: Cells) -> Iterator[Cell]:
    path = _TITLES[_KOREA]
    more = ratio(throughput.ours(path, "bbr"), throughput.ours(path, "cubic"))
    if more.mean is not None:
        yield claim(
            "random losses of 0.06 % on path 5 stop CUBIC but not BBR (Cardwell et al. 2016, "
            "figure 8)",
            "throughput of BBR over CUBIC's",
            more,
            _above(more, 1.0),
        )


def _buffers(used: Cells, delay: Cells) -> Iterator[Cell]:
    reno = used.ours(_TITLES[_FULL_BDP], "reno")
    if reno.mean is not None:
        yield claim(
            "Reno fills a link whose buffer is a bandwidth-delay product (Appenzeller et al. 2004)",
            "utilisation of path 18",
            reno,
            reno.mean >= 0.95,
        )
    for number, full_ms in ((_HALF_BDP, 60.0), (_FULL_BDP, 90.0)):
        cubic = delay.ours(_TITLES[number], "cubic")
        if cubic.mean is not None:
            yield claim(
                f"CUBIC fills the buffer of path {number}: its P95 delay is that of the full queue",
                "P95 delay, ms",
                cubic,
                abs(cubic.mean / full_ms - 1) <= 0.05,
                published=full_ms,
            )


def _overall(cells: Cells) -> Iterator[Cell]:
    """The Pantheon's main result: which scheme is best depends on the path."""
    used = cells.table(table(USED, 1))
    best = {
        max(parts, key=lambda stack: parts[stack])
        for path in used.rows()
        if (parts := {s: m for s in used.columns() if (m := used.mean(path, s)) is not None})
    }
    stretch = cells.table(table(OVERALL, 1))
    if len(stretch.rows()) > 1:
        yield claim(
            "no scheme uses every path best (Yan et al. 2018)",
            "schemes that use some path best",
            Estimate(float(len(best)), None, None, 1),
            len(best) > 1,
        )


def _above(ours: Estimate, least: float) -> bool | None:
    """Whether the whole interval is above; nothing can be said if it reaches both sides."""
    if ours.mean is None:
        return None
    low = ours.mean if ours.lo is None else ours.lo
    high = ours.mean if ours.hi is None else ours.hi
    return True if low > least else False if high < least else None

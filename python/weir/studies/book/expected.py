"""What the chapter says of its figures, and whether ours say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from weir.stats import Estimate
from weir.studies import Cell
from weir.studies.book import joins, rpc, series
from weir.studies.book.experiment import RIVAL_BUFFERS, STREAMS, Extent
from weir.studies.cells import Cells, digits
from weir.studies.claims import claim, ratio, size_of

RIVALRY_SOURCES = (
    "Mean (95 % interval) of BBR's share of both goodputs. Published with kernels: BBR takes "
    "nearly all of a link with a buffer of 0.8 BDP, and no more than CUBIC of one with 8 BDP "
    "(Hock, Bless and Zitterbart, ICNP 2017); above about 1.5 BDP the advantage turns (Scholz et "
    "al., IFIP Networking 2018); why, by BBR's cap on data in flight (Ware et al., IMC 2019)."
)

_ABOUT = 2.0
"""A number is about another if it is at most this factor larger or smaller."""

_SAME = 1.1
_CROSSING_S = 10.0
_TIMES_BETTER = 4.0
_QUICKLY_S = 2.0
_FAIR = 0.2
_SHALLOW, _DEEP = (0.25, 0.5), (8, 16)


def expectations(cells: Cells, extent: Extent) -> Iterator[Cell]:
    """One cell per claim: the chapter's number, if it has one, ours, and a verdict in the note."""
    for network in filter(extent.is_long_enough, series.DRAWN):
        yield from _two_flows(cells.table(joins.TWO), network)
    yield _unfair(cells)
    yield from _large_requests(cells.table(rpc.FIGURES["1 MB"]))
    yield from _small_requests(cells)
    yield _shallow_buffer(cells.table(rpc.BUFFER_FIGURE))
    yield from _reversal(cells.table(rpc.RIVALRY))


def _two_flows(cells: Cells, network: str) -> Iterator[Cell]:
    row = f"{network}, cubic"
    crossing = cells.ours(row, joins.CROSSES)
    yield claim(
        f"two flows meet about ten seconds after the second starts ({network})",
        "CUBIC, crossing, s",
        crossing,
        None if crossing.mean is None else _is_about(crossing.mean, _CROSSING_S),
        "" if crossing.mean is not None else "the lines never cross",
        published=_CROSSING_S,
    )
    share = cells.ours(row, joins.SHARE)
    yield claim(
        f"two flows of one algorithm come to share equally ({network})",
        "CUBIC, share of flow 2",
        share,
        None if share.mean is None else abs(share.mean / 0.5 - 1) <= _FAIR,
        "over the second half of its time",
        published=0.5,
    )
    back = cells.ours(row, joins.RELEASED)
    yield claim(
        f"the first quickly takes back what the second leaves ({network})",
        "CUBIC, reclaimed after, s",
        back,
        None if back.mean is None else back.mean <= _QUICKLY_S,
        f"quickly is taken for {_QUICKLY_S:g} s",
    )


def _unfair(cells: Cells) -> Cell:
    name = next((c["table"] for c in cells.all if c["table"].startswith(series.UNFAIR)), "")
    own = cells.table(name)
    who = own.rows()[0].partition(":")[0] if own.all else ""
    network = name.partition(" ")[2]
    share = cells.table(joins.MIXED).ours(f"{network}, {who}", joins.SHARE)
    return claim(
        "an aggressive second algorithm takes bandwidth from the first",
        f"{who} ({network}), share of flow 2",
        share,
        None if share.mean is None else share.mean > 0.5 * (1 + _FAIR),
        "the most uneven of the mixed pairs",
    )


def _large_requests(cells: Cells) -> Iterator[Cell]:
    worst = max((_gap(cells, streams) for streams in map(str, STREAMS)), key=size_of)
    yield claim(
        "1 MB requests: no significant outlier among five algorithms",
        "largest ratio of the best or worst to its neighbour",
        worst,
        worst.mean is not None and worst.mean < _ABOUT,
        f"an outlier is taken for a factor of {_ABOUT:g}",
    )
    few, many = str(STREAMS[0]), str(STREAMS[-1])
    ratios = [ratio(cells.ours(row, many), cells.ours(row, few)) for row in cells.rows()]
    highest = max(ratios, key=size_of)
    yield claim(
        "1 MB requests: goodput falls with the number of streams",
        f"goodput beside {many} over that beside {few}, highest of five",
        highest,
        highest.mean is not None and highest.mean < 1,
        "",
    )


def _small_requests(cells: Cells) -> Iterator[Cell]:
    figure = rpc.FIGURES["10 KB"]
    goodput = cells.table(figure)
    leads = {streams: _lead(goodput, streams) for streams in map(str, STREAMS)}
    best = Counter(who for who, _ in leads.values()).most_common(1)[0][0]
    led = [(lead, streams) for streams, (who, lead) in leads.items() if who == best]
    lead, streams = sorted(led, key=lambda entry: size_of(entry[0]))[(len(led) - 1) // 2]
    yield claim(
        "10 KB requests: one algorithm is about four times better",
        "best over second, median of the stream counts",
        lead,
        lead.mean is not None and _is_about(lead.mean, _TIMES_BETTER),
        f"{best}, best beside {len(led)} of {len(leads)} numbers of streams; beside {streams}, "
        f"{_order(goodput, streams)}",
        published=_TIMES_BETTER,
    )
    p99, p999 = (cells.table(f"{figure}-p{p}").ours(best, streams) for p in ("99", "99.9"))
    tail = ratio(p999, p99)
    yield claim(
        "10 KB requests: the best one's P99 and P99.9 are the same",
        f"{best}, P99.9 over P99, {streams} streams",
        Estimate(tail.mean, None, None, tail.n),
        None if tail.mean is None else tail.mean <= _SAME,
        "too few requests for a P99.9" if tail.mean is None else "",
        published=1.0,
    )


def _shallow_buffer(cells: Cells) -> Cell:
    columns = ["0.25 BDP", "0.5 BDP"]
    gaps = []
    for column in columns:
        ranked = sorted(cells.rows(), key=lambda row: size_of(cells.ours(row, column)))
        times = ratio(cells.ours(ranked[-1], column), cells.ours(ranked[-2], column))
        gaps.append((times, ranked[-1], column))
    times, who, column = max(gaps, key=lambda gap: size_of(gap[0]))
    return claim(
        "P99 of 10 KB: one algorithm is bad where the buffer is below one BDP",
        "worst P99 over the second worst",
        times,
        times.mean is not None and times.mean >= _ABOUT,
        f"{who} at {column}; bad is taken for a factor of {_ABOUT:g}",
    )


def _reversal(cells: Cells) -> Iterator[Cell]:
    row = cells.rows()[0]
    shallow = [cells.ours(row, f"{bdp:g} BDP") for bdp in RIVAL_BUFFERS if bdp in _SHALLOW]
    deep = [cells.ours(row, f"{bdp:g} BDP") for bdp in RIVAL_BUFFERS if bdp in _DEEP]
    least, most = min(shallow, key=size_of), max(deep, key=size_of)
    above, below = _is_above_half(least), _is_above_half(most)
    yield claim(
        "published elsewhere: BBR takes most of a shallow buffer from CUBIC",
        f"least share of BBR at {_SHALLOW[0]:g} and {_SHALLOW[1]:g} BDP",
        least,
        above,
        "its interval must lie above 0.5",
    )
    yield claim(
        "published elsewhere: CUBIC takes more than BBR of a deep one",
        f"largest share of BBR at {_DEEP[0]:g} and {_DEEP[1]:g} BDP",
        most,
        None if below is None else not below,
        "its interval must lie below 0.5",
    )


def _is_above_half(share: Estimate) -> bool | None:
    """Whether a share's interval lies above one half or below it; None if one half is inside."""
    if share.lo is None or share.hi is None or share.lo <= 0.5 <= share.hi:
        return None
    return share.lo > 0.5


def _gap(cells: Cells, column: str) -> Estimate:
    """How far the best is above the second or the last but one above the worst."""
    ranked = sorted((cells.ours(row, column) for row in cells.rows()), key=size_of)
    return max(ratio(ranked[-1], ranked[-2]), ratio(ranked[1], ranked[0]), key=size_of)


def _order(cells: Cells, column: str) -> str:
    """A column from the best to the worst: `dctcp 0.28, vegas 0.25, …`."""
    ranked = sorted(cells.rows(), key=lambda row: size_of(cells.ours(row, column)), reverse=True)
    return ", ".join(f"{row} {digits(size_of(cells.ours(row, column)))}" for row in ranked)


def _lead(cells: Cells, column: str) -> tuple[str, Estimate]:
    """The best of a column, and how many times it is better than the second."""
    ranked = sorted(cells.rows(), key=lambda row: size_of(cells.ours(row, column)))
    return ranked[-1], ratio(cells.ours(ranked[-1], column), cells.ours(ranked[-2], column))


def _is_about(value: float, other: float) -> bool:
    return other / _ABOUT <= value <= other * _ABOUT

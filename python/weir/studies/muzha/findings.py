"""The answer in words, every part of it made from the cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir.stats import Estimate
from weir.studies import claims
from weir.studies.cells import Cells, digits, interval_text
from weir.studies.muzha import chain, cross, dynamics, levels, losses, mobility, sensitivity
from weir.studies.muzha.expected import above, below
from weir.studies.muzha.experiment import MUZHA, NEWRENO, VEGAS, WINDOWS, hops_in
from weir.studies.muzha.published import printed


def findings(cells: Cells) -> list[str]:
    """The main ones first."""
    expected = cells.table(claims.TABLE).all
    return [
        throughput(cells),
        _retransmissions(cells),
        _fairness(cells),
        _sensitivity(cells),
        _networks(cells),
        _vegas(cells),
        *_random_loss(cells),
        _mobility(cells),
        _levels(cells),
        _grid(cells),
        _dynamics(cells),
        _published(cells),
        *_odd(),
        claims.summary(expected, "of the slides and of the literature"),
        *claims.in_words(expected),
        "Not published, and so ours: what routers measure, over which time, the thresholds of the "
        "indices, how often a window moves, what a timeout does, the size of packets, the distance "
        "of nodes, seeds and starting times. The defaults were chosen before any result was known.",
        "Deviations: packets may cross 64 hops, as 32 cannot be crossed within the 30 of ns-2's "
        "AODV; Vegas is Linux's, which keeps 2 to 4 segments queued where ns-2's keeps 1 to 3.",
    ]


def throughput(cells: Cells) -> str:
    """Whether Muzha carries as much more as is claimed."""
    low, high = printed().claimed_gain
    parts, verdicts = [], []
    for window in WINDOWS:
        own = cells.table(chain.table(chain.GAIN, window))
        ours = own.ours(MUZHA, chain.ALL_HOPS)
        best, worst = _extremes(own, MUZHA)
        parts.append(f"{interval_text(ours)} at window {window} (from {worst} to {best})")
        verdicts.append(_verdict(ours, low))
    return (
        f"Does Muzha carry 5 to 10 % more than NewReno on a chain? {_answer(verdicts)} Throughput "
        "over "
        f"NewReno's, all lengths together: {'; '.join(parts)}. Claimed are {digits(low)} to "
        f"{digits(high)}."
    )


def _verdict(ours: Estimate, least: float) -> str:
    if above(ours, least):
        return "yes"
    if below(ours, 1.0):
        return "less"
    if above(ours, 1.0):
        return "some"
    return "no difference" if below(ours, least) else "open"


_SPOKEN = {
    "yes": "at least as much as claimed",
    "some": "a gain, but not shown to be that large",
    "no difference": "none that can be shown, and less than claimed",
    "open": "cannot be told from this many seeds",
    "less": "it carries less",
}


def _answer(verdicts: Sequence[str]) -> str:
    told = [f"{_SPOKEN[v]} at window {w}" for v, w in zip(verdicts, WINDOWS, strict=True)]
    if set(verdicts) == {"yes"}:
        return "Yes, at every window."
    word = "Yes and no" if "yes" in verdicts else "No"
    return f"{word}: {', '.join(told)}."


def _extremes(own: Cells, row: str) -> tuple[str, str]:
    """The largest and the smallest value of a row, with their places."""
    places = [column for column in own.columns() if column != chain.ALL_HOPS]
    found = [(own.mean(row, place) or 0.0, place) for place in places]
    best, worst = max(found), min(found)
    return f"{digits(best[0])} at {best[1]}", f"{digits(worst[0])} at {worst[1]}"


def _retransmissions(cells: Cells) -> str:
    parts, fewer = [], []
    for window in WINDOWS:
        own = cells.table(chain.table(chain.RESENT, window))
        muzha, vegas = (own.ours(who, chain.ALL_HOPS) for who in (MUZHA, VEGAS))
        fewer.append(below(muzha, 1.0))
        parts.append(
            f"{interval_text(muzha)} times NewReno's at window {window} (Vegas: "
            f"{digits(vegas.mean or 0)})"
        )
    return (
        f"Does it resend less? {_where(fewer, 'Yes', 'No')} Segments sent again, all lengths "
        f"together: {'; '.join(parts)}."
    )


def _where(verdicts: Sequence[bool | None], yes: str, no: str) -> str:
    """One word where all agree; otherwise where it holds."""
    holding = [w for verdict, w in zip(verdicts, WINDOWS, strict=True) if verdict]
    if len(holding) == len(WINDOWS):
        return f"{yes}, at every window."
    if holding:
        return f"At window {' and '.join(map(str, holding))} only."
    return f"{no}, that cannot be shown." if None in verdicts else f"{no}."


def _fairness(cells: Cells) -> str:
    parts, verdicts = [], []
    for window in WINDOWS:
        for hops in cross.HOPS:
            own = cells.table(cross.table(hops, window))
            jain = own.ours(cross.pair_name((MUZHA, NEWRENO)), cross.FAIRNESS)
            share = own.ours(cross.flow_name(MUZHA, NEWRENO), cross.SHARE)
            like = own.ours(cross.pair_name((NEWRENO, NEWRENO)), cross.FAIRNESS)
            if jain.mean is None or share.lo is None or share.hi is None:
                continue
            verdicts.append(share.lo <= 0.5 <= share.hi)
            parts.append(
                f"{digits(jain.mean)} over {hops} hops at window {window} (two NewReno flows "
                f"{digits(like.mean or 0)}; Muzha's share {digits(share.mean or 0)})"
            )
    holding = sum(verdicts)
    return (
        "Is it fair to NewReno? Its mean share of a cross cannot be told from a half in "
        f"{holding} of {len(verdicts)} settings; but single runs are as uneven as the medium makes "
        f"them. Jain's index, mean over the seeds, printed as 0.99: {'; '.join(parts)}."
    )


def _vegas(cells: Cells) -> str:
    parts = []
    for window in WINDOWS:
        own = cells.table(chain.table(chain.GAIN, window))
        parts.append(f"{interval_text(own.ours(VEGAS, chain.ALL_HOPS))} at window {window}")
    shares = [
        f"{digits(mean)} over {hops} hops"
        for hops in cross.HOPS
        if (
            mean := cells.table(cross.table(hops, WINDOWS[-1])).mean(
                cross.flow_name(VEGAS, NEWRENO), cross.SHARE
            )
        )
        is not None
    ]
    return (
        f"Vegas, which needs no router, carries {', '.join(parts)} times what NewReno does on a "
        "chain; "
        f"its share beside NewReno on a cross at window {WINDOWS[-1]} is {', '.join(shares)}."
    )


def _sensitivity(cells: Cells) -> str:
    own = cells.table(sensitivity.TABLE)
    told = []
    for window in sensitivity.WINDOWS:
        heading = sensitivity.column("throughput", window)
        usual = own.ours(sensitivity.DEFAULT, heading)
        ranked = sorted(
            (own.mean(row, heading) or 0.0, row) for row in own.rows() if row != sensitivity.DEFAULT
        )
        (low, lowest), (high, highest) = ranked[0], ranked[-1]
        reaching = sum(mean >= printed().claimed_gain[0] for mean, _ in ranked)
        told.append(
            f"at window {window} the gain is {interval_text(usual)} with our defaults and from "
            f"{digits(low)} ({lowest}) to {digits(high)} ({highest}), and {reaching} of "
            f"{len(ranked)} other settings reach {digits(printed().claimed_gain[0])}"
        )
    return (
        f"How much hangs on what was never published? Over {_lengths(cells)} hops, one setting "
        "changed "
        f"at a time, {'; '.join(told)}."
    )


def _lengths(cells: Cells) -> str:
    lengths = {hops_in(c) for c in cells.table(chain.table("throughput", WINDOWS[0])).columns()}
    return " and ".join(str(hops) for hops in sensitivity.HOPS if hops in lengths)


def _networks(cells: Cells) -> str:
    own = cells.table(sensitivity.NETWORK_TABLE)
    heading = sensitivity.column("throughput", sensitivity.WINDOWS[-1])
    parts = [f"{interval_text(own.ours(row, heading))} {_on(row)}" for row in own.rows()]
    return (
        f"And on the network itself, at window {sensitivity.WINDOWS[-1]}: the gain is "
        f"{', '.join(parts)}."
    )


def _on(row: str) -> str:
    return row if row == sensitivity.DEFAULT else f"with {row}"


def _random_loss(cells: Cells) -> Iterator[str]:
    for hops in losses.HOPS:
        parts = []
        for kind in losses.KINDS:
            own = cells.table(losses.table(losses.GAIN, kind, hops))
            shown = [column for column in own.columns() if losses.percent_of(column) in _TOLD]
            values = [f"{interval_text(own.ours(MUZHA, column))} at {column}" for column in shown]
            if values:
                parts.append(f"{', '.join(values)} of {kind} lost on each hop")
        if parts:
            yield (
                f"Random loss over {hops} hops at window {losses.WINDOW}, throughput over "
                "NewReno's: "
                f"{'; '.join(parts)}. The MAC repeats frames, so those losses hardly reach the "
                "transport; lost packets do."
            )


_TOLD = (0.0, 1.0, 2.0, 5.0)
"""Loss rates that are put into words."""


def _mobility(cells: Cells) -> str:
    told = []
    for routing, name in mobility.ROUTINGS.items():
        own = cells.table(mobility.table(mobility.GAIN, routing))
        parts = []
        for sender in own.rows():
            means = [own.ours(sender, column) for column in own.columns()]
            better = sum(bool(above(ours, 1.0)) for ours in means)
            worse = sum(bool(below(ours, 1.0)) for ours in means)
            low = min(ours.mean or 0.0 for ours in means)
            high = max(ours.mean or 0.0 for ours in means)
            parts.append(
                f"{sender} {digits(low)} to {digits(high)} (shown to be more at {better}, less at "
                f"{worse} of {len(means)} speeds)"
            )
        told.append(f"over {name} {', '.join(parts)}")
    return (
        f"With moving nodes, throughput over that of NewReno left in the dark: {'; '.join(told)}."
    )


def _levels(cells: Cells) -> str:
    own = cells.table(levels.LEVELS_TABLE)
    parts = []
    for row in own.rows():
        ranked = sorted((own.mean(row, c) or 0.0, c) for c in own.columns())
        (low, worst), (high, best) = ranked[0], ranked[-1]
        spread = (high - low) / low if low else 0.0
        parts.append(
            f"{best} {digits(high)} and {worst} {digits(low)} kbit/s at {row} ({spread:.0%})"
        )
    return f"Number of levels, best and worst, mean over the lengths: {'; '.join(parts)}."


def _grid(cells: Cells) -> str:
    found = [
        (own.mean(row, column) or 0.0, f"{family} {row} {column}")
        for family in levels.FAMILIES
        for own in [cells.table(levels.grid_table(family))]
        for row in own.rows()
        for column in own.columns()
    ]
    best, worst = max(found), min(found)
    window = WINDOWS[-1]
    own = cells.table(levels.finalists_table(window))
    finals = ", ".join(f"{row} {own.text(row, 'throughput')}" for row in own.rows())
    return (
        f"Of {len(found)} settings of increase and decrease at window {levels.GRID_WINDOW} the "
        "best is "
        f"{best[1]} with {digits(best[0])} times NewReno's throughput, the worst {worst[1]} with "
        f"{digits(worst[0])}. The slides' four finalists beside the table of five levels: {finals}."
    )


def _dynamics(cells: Cells) -> str:
    own = cells.table(dynamics.TABLE)
    parts = [
        f"{row} {own.text(row, dynamics.FAIRNESS)} (last flow {own.text(row, dynamics.FLOWS[-1])} "
        f"kbit/s, largest window {digits(own.mean(row, dynamics.LARGEST) or 0)})"
        for row in own.rows()
    ]
    return (
        f"Three flows on {dynamics.HOPS} hops, Jain's index while all three send: "
        f"{', '.join(parts)}."
    )


def _published(cells: Cells) -> str:
    """Which window is nearest to the printed rows that are not ambiguous."""
    parts = []
    for window in WINDOWS:
        own = [c for c in cells.table(chain.index_table(window)).all if not c["ambiguous"]]
        rates = [c for c in own if c["unit"] == "kbit/s" and c["ours"]["mean"]]
        if rates:
            told = ", ".join(
                f"{c['column']} {digits(c['ours']['mean'])} (printed {digits(c['published'])})"
                for c in rates
            )
            parts.append(f"window {window}: {told}")
    return (
        f"Beside the only row of the index comparison that can be read, 4 hops: {'; '.join(parts)}."
    )


def _odd() -> Iterator[str]:
    """What does not fit in the source."""
    for index in printed().indices:
        yield f"In the slides, index comparison of {index.hops} hops: {index.note}"
    for own in printed().crosses:
        if own.note:
            pair = cross.pair_name(own.pair)
            yield f"In the slides, cross of {own.hops} hops, {pair}: {own.note}"

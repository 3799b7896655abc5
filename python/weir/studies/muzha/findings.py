"""The answer in words, every part of it made from the cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir.fairness import jain
from weir.report.summary import listed
from weir.stats import Estimate
from weir.studies import claims
from weir.studies.cells import Cells, digits, interval_text
from weir.studies.claims import above, below
from weir.studies.muzha import (
    chain,
    conditions,
    cross,
    dynamics,
    levels,
    sensitivity,
)
from weir.studies.muzha.expected import within
from weir.studies.muzha.experiment import MUZHA, MUZHA_RTT, NEWRENO, VEGAS, WINDOWS, hops_in
from weir.studies.muzha.published import printed


def findings(cells: Cells) -> list[str]:
    """The main ones first."""
    expected = cells.table(claims.TABLE).all
    return [
        printed_ranges(cells),
        throughput(cells),
        _retransmissions(cells),
        _fairness(cells),
        _printed_fairness(),
        _sensitivity(cells),
        _networks(cells),
        _vegas(cells),
        *conditions.findings(cells),
        _levels(cells),
        _grid(cells),
        _dynamics(cells),
        _published(cells),
        *_odd(),
        claims.summary(expected, "of the slides and of the literature"),
        *claims.in_words(expected),
        "Not published, and so ours: what routers measure, over which time, the thresholds of the "
        "indices, how often a window moves, what a timeout does, the size of packets, the distance "
        "of nodes, seeds and starting times.",
        "Chosen before any result was known: what routers measure, the memory of 200 ms, the "
        "thresholds, the sender's rules, and the parts taken from the slides. Chosen after seeing "
        "results: random starts on the cross, and the cross whose routes cannot fail; 200 ms "
        "between ELFN's probes and 1 s for TCP-F; taking 4 to 8, 4 to 10 and 13 to 32 hops "
        "together, and holding the first against the printed range, not only against the 5 to "
        "10 % of the headline; the memories of half, one and two round trips; Jain's index of mean "
        "throughputs; the thresholds of RED. Earlier versions did not bound Muzha's window by the "
        "receiver's at windows 4 and 8.",
        "Deviations: packets may cross 64 hops, as 32 cannot be crossed within the 30 of ns-2's "
        "AODV; Vegas is Linux's, which keeps 2 to 4 segments queued where ns-2's keeps 1 to 3.",
    ]


def printed_ranges(cells: Cells) -> str:
    """Ours beside the index comparison, over its lengths."""
    ranges = printed().ranges(MUZHA, NEWRENO)
    parts, inside = [], []
    for window in WINDOWS:
        tables = [cells.table(chain.table(name, window)) for name in (chain.GAIN, chain.RESENT)]
        ours = [own.ours(MUZHA, chain.SHORT) for own in tables]
        if all(within(one, *r) for one, r in zip(ours, ranges.values(), strict=True)):
            inside.append(str(window))
        texts = [" and ".join(map(interval_text, ours))]
        texts.append(" and ".join(own.text(MUZHA_RTT, chain.SHORT) for own in tables))
        parts.append(f"{texts[0]} at window {window} (with a memory of one RTT {texts[1]})")
    answer = f"both means lie in them at window {listed(inside)}" if inside else "nowhere do both"
    (low, high), (least, most) = ranges.values()
    return (
        "Is the slides' index comparison reproduced? It prints "
        f"{digits(low)} to {digits(high)} times NewReno's throughput and {digits(least)} to "
        f"{digits(most)} times its retransmissions over 4 to 8 hops: {answer}. Ours are "
        f"{'; '.join(parts)}."
    )


def throughput(cells: Cells) -> str:
    """Whether Muzha carries as much more as is claimed."""
    low, high = printed().claimed_gain
    parts, verdicts = [], []
    for window in WINDOWS:
        own = cells.table(chain.table(chain.GAIN, window))
        ours = own.ours(MUZHA, chain.ALL_HOPS)
        groups = ", ".join(
            f"{own.text(MUZHA, group)} over {group.removeprefix('lengths ')} hops"
            for group in chain.GROUPS
            if group != chain.ALL_HOPS and own.mean(MUZHA, group) is not None
        )
        apart = f", {groups}" if groups else ""
        parts.append(f"{interval_text(ours)} at window {window}{apart}{_lengths_text(own)}")
        verdicts.append(_verdict(ours, low))
    return (
        f"Does Muzha carry 5 to 10 % more than NewReno on a chain? {_answer(verdicts)} "
        f"Throughput over NewReno's, all lengths together: {'; '.join(parts)}. Claimed are "
        f"{digits(low)} to {digits(high)}."
    )


def _lengths_text(own: Cells) -> str:
    """At which lengths the whole interval lies above or below one."""
    places = [column for column in own.columns() if chain.is_length(column)]
    phrases = []
    for word, side in (("more", above), ("less", below)):
        lengths = [str(hops_in(p)) for p in places if side(own.ours(MUZHA, p), 1.0)]
        if lengths:
            phrases.append(f"{word} at {listed(lengths)} hops")
    return f" ({'; '.join(phrases)})" if phrases else ""


def _verdict(ours: Estimate, least: float) -> str:
    if above(ours, least):
        return "yes"
    if below(ours, 1.0):
        return "less"
    if below(ours, least):
        return "smaller" if above(ours, 1.0) else "none"
    return "some" if above(ours, 1.0) else "open"


_SPOKEN = {
    "yes": "it carries at least as much more as is claimed",
    "some": "it carries more, but not shown to be as much as is claimed",
    "smaller": "it carries more, but less than is claimed",
    "none": "no gain is shown, and one as claimed is ruled out",
    "open": "inconclusive with this number of seeds",
    "less": "it carries less",
}


def _answer(verdicts: Sequence[str]) -> str:
    if set(verdicts) == {"yes"}:
        return "Yes, at every window."
    phrases = []
    for verdict in dict.fromkeys(verdicts):
        windows = [str(w) for w, v in zip(WINDOWS, verdicts, strict=True) if v == verdict]
        phrases.append(f"{_SPOKEN[verdict]} at window {listed(windows)}")
    return f"{'In part' if 'yes' in verdicts else 'No'}: {'; '.join(phrases)}."


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
    """Beside the controls, for two flows of one kind share no better."""
    even, uneven, worse, better, found = 0, [], 0, 0, []
    of_means: list[float] = []
    for setting in cross.SETTINGS.values():
        for hops in cross.HOPS:
            own = cells.table(cross.table(hops, setting))
            ours = own.ours(cross.pair_name((MUZHA, NEWRENO)), cross.FAIRNESS)
            like = own.ours(cross.pair_name((NEWRENO, NEWRENO)), cross.FAIRNESS)
            means = own.mean(cross.pair_name((MUZHA, NEWRENO)), cross.FAIRNESS_OF_MEANS)
            share = own.ours(cross.flow_name(MUZHA, NEWRENO), cross.SHARE)
            if None in (ours.mean, like.mean, share.mean, means):
                continue
            of_means.append(means or 0.0)
            found.append((ours.mean or 0.0, like.mean or 0.0))
            even += above(share, 0.5) is None
            if above(share, 0.5) is not None:
                where = f"{hops} hops, {setting.name}"
                uneven.append(f"{interval_text(share)} at {where}")
            worse += bool(below(ours, like.lo or 0.0))
            better += bool(above(ours, like.hi or 1.0))
    ours_range, like_range = (
        f"{digits(min(side))} to {digits(max(side))}" for side in zip(*found, strict=True)
    )
    exceptions = f" (else it is {'; '.join(uneven)})" if uneven else ""
    return (
        f"Is it fair to NewReno? {_how_fair(worse, better)}: over {len(found)} crosses Jain's "
        "index, "
        f"mean over the seeds, is {ours_range} for Muzha beside NewReno, where the slides print "
        "0.99, "
        f"and {like_range} for two NewReno flows; shown to be lower in {worse} and higher in "
        f"{better} "
        f"of them. The index of the mean throughputs, as printed, is "
        f"{digits(min(of_means))} to {digits(max(of_means))} for Muzha beside NewReno. Muzha's "
        f"share cannot be phrases from a half in {even}{exceptions}. "
        f"{_known(cells)}"
    )


def _printed_fairness() -> str:
    """Which index of fairness the slides print."""
    rows = printed().crosses
    same = sum(abs((jain(list(r.throughput)) or 0.0) - r.fairness) <= _ROUNDED for r in rows)
    return (
        "The index of fairness that the slides print is that of the printed throughputs in "
        f"{same} of {len(rows)} rows; so ours of mean throughputs is what compares with it."
    )


_ROUNDED = 0.011
"""Printed indices have two digits, and may be cut off."""


def _how_fair(worse: int, better: int) -> str:
    if worse > better:
        return "Less than NewReno is to itself"
    return "More than NewReno is to itself" if better > worse else "As much as NewReno is to itself"


def _known(cells: Cells) -> str:
    """The same where routes cannot fail."""
    parts = []
    for hops in cross.HOPS:
        own = cells.table(cross.table(hops, cross.KNOWN))
        values = [
            f"{digits(own.mean(cross.pair_name(pair), cross.FAIRNESS) or 0)} for "
            f"{cross.pair_name(pair)}"
            for pair in cross.PAIRS[:3]
            if own.at(cross.pair_name(pair), cross.FAIRNESS) is not None
        ]
        if values:
            parts.append(f"over {hops} hops {', '.join(values)}")
    return (
        f"Where routes are known and cannot fail, at window {cross.KNOWN.window}, it is "
        f"{'; '.join(parts)}."
    )


def _vegas(cells: Cells) -> str:
    parts = []
    for window in WINDOWS:
        own = cells.table(chain.table(chain.GAIN, window))
        parts.append(f"{interval_text(own.ours(VEGAS, chain.ALL_HOPS))} at window {window}")
    shares = [
        f"{', '.join(found)} {phrases}"
        for setting, phrases in (
            (cross.SETTINGS[WINDOWS[-1]], "over AODV"),
            (cross.KNOWN, "where routes cannot fail"),
        )
        if (found := _shares_of_vegas(cells, setting))
    ]
    return (
        f"Vegas, which needs no router, carries {', '.join(parts)} times what NewReno does on a "
        f"chain; its share beside NewReno on a cross at window {WINDOWS[-1]} is "
        f"{', and '.join(shares)}."
    )


def _shares_of_vegas(cells: Cells, setting: cross.Setting) -> list[str]:
    row = cross.flow_name(VEGAS, NEWRENO)
    means = {h: cells.table(cross.table(h, setting)).mean(row, cross.SHARE) for h in cross.HOPS}
    return [f"{digits(mean)} over {h} hops" for h, mean in means.items() if mean is not None]


def _sensitivity(cells: Cells) -> str:
    own = cells.table(sensitivity.TABLE)
    phrases = []
    for window in sensitivity.WINDOWS:
        heading = sensitivity.column("throughput", window)
        usual = own.ours(sensitivity.DEFAULT, heading)
        ranked = sorted(
            (own.mean(row, heading) or 0.0, row) for row in own.rows() if row != sensitivity.DEFAULT
        )
        (low, lowest), (high, highest) = ranked[0], ranked[-1]
        reaching = sum(mean >= printed().claimed_gain[0] for mean, _ in ranked)
        phrases.append(
            f"at window {window} the gain is {interval_text(usual)} with our defaults and from "
            f"{digits(low)} ({lowest}) to {digits(high)} ({highest}), and {reaching} of "
            f"{len(ranked)} other settings reach {digits(printed().claimed_gain[0])}"
        )
    return (
        f"How much depends on what was never published? Over {_lengths(cells)} hops, one setting "
        "changed "
        f"at a time, {'; '.join(phrases)}."
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
            phrases = ", ".join(
                f"{c['column']} {digits(c['ours']['mean'])} (printed {digits(c['published'])})"
                for c in rates
            )
            parts.append(f"window {window}: {phrases}")
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

"""A fabric of a data centre: how much of each link is used, and slowdowns by size of connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weir.base.grid import listed
from weir.dynamics.arrivals import left_out
from weir.dynamics.fabric import GROUPS, size_groups
from weir.graphics import theme
from weir.graphics.chart import Chart, Compound, Shown, below_each_other, channel, inline, layered
from weir.graphics.figure import Figure
from weir.graphics.lines import LineAxes, lines
from weir.graphics.select import Case, shown_over_time
from weir.results.results import Results

DRAWING = "fabric"
SLOWDOWNS = "slowdown-by-size"

_TIERS = {"h": 0, "leaf": 1, "edge": 1, "spine": 2, "agg": 2, "core": 3}
"""How far above the hosts a node stands, by the letters of its name."""
_WORDS = {"h": "hosts", "leaf": "leaves", "spine": "spines", "agg": "aggregation", "core": "core"}
"""What stands next to a tier, where it is not its letters."""
_HEIGHT = 100
"""Between two tiers, in pixels."""
_MARGIN = 0.2
_USE = ("#eaeef2", "#fdae6b", "#e6550d", "#7f2704")
_FEWEST_GROUPS = 3


def drawing(results: Results, cases: Sequence[Case]) -> Figure | None:
    """Hosts, switches and their links, one fabric below the other; None without a fabric."""
    shown = [case for case in shown_over_time(cases) if case.is_fabric]
    if not shown:
        return None
    data = pl.concat([_links(results, case) for case in shown])
    panels = [
        _panel(data.filter(case=case.name)).properties(title=case.name if len(shown) > 1 else "")
        for case in shown
    ]
    chart = below_each_other(*panels, spacing=16) if len(panels) > 1 else panels[0]
    caption = (
        "Each line is a link; its colour is the use of the busier direction, mean over the "
        "repeats. The dot is on the link of the port whose packets waited longest (P99)."
    )
    runs = tuple(run for case in shown for run in case.runs)
    return Figure(DRAWING, "Use of the fabric's links", caption, chart, data, runs)


def slowdowns(results: Results, cases: Sequence[Case]) -> Figure | None:
    """Percentiles of slowdowns in groups of equal numbers of connections by size."""
    shown = [case for case in shown_over_time(cases) if case.is_uniform]
    rows = [row for case in shown for row in _slowdowns(results, case)]
    if not rows:
        return None
    data = pl.DataFrame(rows)
    runs = tuple(run for case in shown for run in case.runs)
    found = results.fates(runs)
    drawn = {panel.rpartition(", ")[0] for panel in data["panel"].unique()}
    missing = [each.flow for each in found if each.flow not in drawn]
    no_panel = (
        f"No panel shows {listed(missing)}: connections of fewer than {_FEWEST_GROUPS} sizes, or "
        "too few with a time."
    )
    caption = (
        f"Connections of all repeats by size, in {GROUPS} groups of equal numbers; each point is "
        "at the largest size of its group. Slowdown is the completion time over the shortest "
        "possible. Bars are 95 % intervals. A percentile needs five connections beyond it. "
        f"{' '.join([*left_out(found), *([no_panel] if missing else [])])}"
    ).strip()
    axes = LineAxes("size of connection, kB", "slowdown", is_x_log=True, is_y_log=True)
    return lines(SLOWDOWNS, "Slowdown by size", caption, data, axes, runs)


def _slowdowns(results: Results, case: Case) -> Iterator[dict[str, object]]:
    names = dict(results.flows.filter(run=case.typical).select("flow", "name").iter_rows())
    arrivals = results.scan("arrivals").filter(pl.col("run").is_in(list(case.runs))).collect()
    for (flow,), own in arrivals.group_by("flow", maintain_order=True):
        groups = size_groups(own, min(GROUPS, own["size_bytes"].n_unique()))
        for group in groups if len(groups) >= _FEWEST_GROUPS else ():
            for found in group.slowdown:
                if found.value is not None:
                    yield {
                        "panel": f"{names[flow]}, P{found.percent:g}",
                        "series": case.name,
                        "at": float(f"{group.up_to_bytes / 1000:.3g}"),
                        "value": found.value,
                        "lo": found.lo,
                        "hi": found.hi,
                        "n": found.n,
                    }


def _links(results: Results, case: Case) -> pl.DataFrame:
    """A row per link of two directions: its ends' places, its use, and its longest wait."""
    name = pl.col("name").str.split("-")
    ends = pl.concat_list(name.list.get(0), name.list.get(1))
    ports = (
        results.links.filter(pl.col("run").is_in(list(case.runs)))
        .group_by("name", maintain_order=True)
        .agg(
            pl.col("utilisation").mean() * 100,
            pl.col("queue_delay_ms_p99").mean(),
            pl.sum_horizontal("dropped_queue", "dropped_buffer").mean().alias("drops"),
        )
        .with_columns(
            ends.list.get(0).alias("one"),
            ends.list.get(1).alias("other"),
            ends.list.sort().list.join(" to ").alias("link"),
        )
    )
    nodes = dict(_places(pl.concat([ports["one"], ports["other"]]).unique().to_list()))
    place = [
        pl.col(end).replace_strict({n: p[axis] for n, p in nodes.items()}).alias(f"{end}_{label}")
        for end in ("one", "other")
        for axis, label in enumerate(("x", "y"))
    ]
    both = ports.group_by("link", maintain_order=True).agg(
        pl.col("one", "other").first(),
        pl.col("utilisation").max().alias("use"),
        pl.col("queue_delay_ms_p99").max().alias("wait_ms"),
        pl.col("name").sort_by("queue_delay_ms_p99", nulls_last=False).last().alias("port"),
        pl.col("drops").sum(),
    )
    longest = pl.col("wait_ms") == pl.col("wait_ms").max()
    return both.select(
        pl.lit(case.name).alias("case"),
        "one",
        "other",
        "link",
        "use",
        "wait_ms",
        "port",
        "drops",
        longest.alias("is_longest"),
        *place,
    )


def _places(names: Sequence[str]) -> Iterator[tuple[str, tuple[float, int]]]:
    """Where each node stands: every tier is spread over the whole width."""
    by_tier: dict[int, list[tuple[int, str]]] = {}
    for name in names:
        letters = name.rstrip("0123456789")
        by_tier.setdefault(_TIERS[letters], []).append((int(name[len(letters) :]), name))
    for tier, own in by_tier.items():
        for position, (_, name) in enumerate(sorted(own)):
            yield name, ((position + 0.5) / len(own), tier)


def _panel(links: pl.DataFrame) -> Compound:
    names = pl.concat([links["one"], links["other"]]).unique().str.strip_chars_end("0123456789")
    words = {_TIERS[letters]: _WORDS.get(letters, letters) for letters in names.sort()}
    tiers = max(words)
    x = channel("one_x:Q", axis=None, scale={"domain": [0, 1], "nice": False})
    vertical = {"domain": [-_MARGIN, tiers + _MARGIN], "nice": False}
    y = channel("one_y:Q", axis=None, scale=vertical)
    colour = channel(
        "use:Q",
        scale={"domain": [0, 33, 67, 100], "range": list(_USE), "interpolate": "rgb"},
        legend={"title": "use of the busier direction, %", "orient": "top", "gradientLength": 200},
    )
    tips: list[Shown] = [
        "link:N",
        channel("use:Q", format=".1f"),
        channel("wait_ms:Q", format=".4g"),
        channel("drops:Q", format=".4g"),
    ]
    rules = Chart(inline(links.sort("use"))).mark("rule", strokeWidth=1.6)
    wires = rules.encode(x=x, y=y, x2="other_x:Q", y2="other_y:Q", color=colour, tooltip=tips)
    ends = [
        links.select(pl.col(f"{end}_x").alias("x"), pl.col(f"{end}_y").alias("y"))
        for end in ("one", "other")
    ]
    nodes = Chart(inline(pl.concat(ends).unique().sort("y", "x")))
    across, up = channel("x:Q", axis=None), channel("y:Q", axis=None)
    dots = nodes.mark("square", color=theme.INK, opacity=1, size=26).encode(x=across, y=up)
    middle = links.filter(pl.col("is_longest")).select(
        ((pl.col("one_x") + pl.col("other_x")) / 2).alias("x"),
        ((pl.col("one_y") + pl.col("other_y")) / 2).alias("y"),
        pl.format("{}: {} ms", "port", pl.col("wait_ms").round_sig_figs(2)).alias("text"),
    )
    marked = Chart(inline(middle)).encode(x=across, y=up)
    worst = marked.mark("circle", color=theme.INK, size=60, opacity=1)
    halo = marked.mark("text", dy=-10, stroke="white", strokeWidth=3).encode(text="text:N")
    text = marked.mark("text", dy=-10, color=theme.INK).encode(text="text:N")
    labels = pl.DataFrame({"y": list(words), "text": list(words.values())})
    tier = Chart(inline(labels)).mark("text", align="left", dy=-12, color=theme.SOFT)
    left = tier.encode(x={"value": 0}, y=up, text="text:N")
    chart = layered(wires, dots, worst, halo, text, left)
    sized: Compound = chart.properties(width=theme.WIDTH, height=_HEIGHT * (tiers + 2 * _MARGIN))
    return sized

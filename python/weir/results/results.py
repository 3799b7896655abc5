"""Results on disk as polars frames, and what they say about each case."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from weir.base import disk
from weir.base.errors import InputError, unknown
from weir.base.extras import imported
from weir.base.plain import plain
from weir.dynamics.arrivals import Completions, Fates, completions, fates
from weir.dynamics.criteria import COARSE_BIN_S, EPSILON, HOLD_S, RECLAIMED, SHORTEST_BIN_S, Rule
from weir.results import manifest, metrics, parquet
from weir.scenario.source import IN_WORDS, SIM, SPOKEN
from weir.statistics.censoring import Wait
from weir.statistics.intervals import Estimate, mean_interval
from weir.statistics.requests import PERCENTS, Percentile, percentiles

if TYPE_CHECKING:
    import pandas as pd

    from weir.dynamics.convergence import Epoch
    from weir.dynamics.curves import Curve
    from weir.dynamics.sharing import Observed

TABLES = (
    "runs",
    "flows",
    "samples",
    "acks",
    "queues",
    "links",
    "nodes",
    "frames",
    "requests",
    "arrivals",
    "events",
)

OPTIONAL = ("probes", "marks", "limits")
"""Tables that only results of `weir test` have."""

INTERNAL = "cc."
"""What the columns of controllers' internal variables in table `samples` begin with."""

_FEW = 4
_KEPT_BYTES = 64 << 20
"""A table that unpacks to no more is read once and kept."""

_MADE_UP_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
)
"""Errors of tables that have other columns, types or rows than Weir writes."""


def load(directory: str | Path) -> Results:
    """The results in `directory`, a run directory or the `latest` link to one.

    Raises:
        InputError: there are none, they are damaged, or a newer version of Weir wrote them.
    """
    path = Path(directory)
    return Results(path.resolve(), manifest.read(path))


@contextmanager
def damage_reported(*directories: str | Path) -> Iterator[None]:
    """Turns what made-up results lead to, whatever it is, into one line.

    Raises:
        InputError: what is on disk is not as Weir writes it.
    """
    try:
        yield
    except _MADE_UP_ERRORS as error:
        where = " or ".join(map(str, directories))
        what = plain(f"{type(error).__name__}: {error}".splitlines()[0])
        raise InputError(f"{where}: not as Weir writes results ({what})") from error


class Results:
    """One result directory. Tables are read at first use, and kept."""

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self._unpacked: dict[str, int] = {}
        """What verified files unpack to, in bytes."""
        self._opened: dict[str, pl.LazyFrame] = {}

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row per run: label, stack, repeat, seed, swept keys, status and run totals."""
        return self.scan("runs").collect()

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per run and flow: what it achieved."""
        return self.scan("flows").collect()

    @cached_property
    def samples(self) -> pl.DataFrame:
        """Senders over time: cwnd, ssthresh, in flight, RTT, pacing, goodput."""
        return self.scan("samples").collect()

    @cached_property
    def acks(self) -> pl.DataFrame:
        """State of senders at their first acknowledgements, if requested."""
        return self.scan("acks").collect()

    @cached_property
    def queues(self) -> pl.DataFrame:
        """Queues over time: length, delay, drops, marks, utilisation."""
        return self.scan("queues").collect()

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row per run and link: what passed and what was lost."""
        return self.scan("links").collect()

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """One row per run and node of a radio network: frames, drops, how busy it was."""
        return self.scan("nodes").collect()

    @cached_property
    def frames(self) -> pl.DataFrame:
        """Frames on the air, up to the number that the scenario requests."""
        return self.scan("frames").collect()

    @cached_property
    def requests(self) -> pl.DataFrame:
        """One row per answered request."""
        return self.scan("requests").collect()

    @cached_property
    def arrivals(self) -> pl.DataFrame:
        """One row per connection of a flow of kind `flow-sizes`."""
        return self.scan("arrivals").collect()

    def completions(self, label: str) -> list[Completions]:
        """What became of the connections of a case, by flow and class of sizes.

        Empty where no flow makes connections.

        Raises:
            InputError: there is no such case.
        """
        runs = list(self._runs(label).values())
        return completions(self.flows, self.scan("arrivals"), runs) if self._has_arrivals else []

    def fates(self, runs: Collection[int] | None = None) -> list[Fates]:
        """How many connections came and ended in these runs, or in all, by flow.

        Empty where no flow makes connections.
        """
        most = {
            run: case["scenario"].get("measure", {}).get("arrivals")
            for case in self.cases
            for run in self._runs(case["label"]).values()
            if runs is None or run in runs
        }
        if not self._has_arrivals:
            return []
        found = fates(self.flows, self.scan("arrivals"), most)
        planned = self._listed(most)
        return [
            replace(one, late=planned[one.flow] - one.n)
            if one.most is None and planned[one.flow] > one.n
            else one
            for one in found
        ]

    def _listed(self, runs: Collection[int]) -> Counter[str]:
        """How many connections the lists of scenarios have in these runs, by flow."""
        planned: Counter[str] = Counter()
        for case in self.cases:
            count = sum(run in runs for run in self._runs(case["label"]).values())
            most = case["scenario"].get("measure", {}).get("arrivals", math.inf)
            for flow in case["scenario"]["flow"]:
                # Without a row for each, which ones began is not known.
                listed = flow["workload"].get("list", ())
                if len(listed) <= most:
                    planned[flow["name"]] += count * len(listed)
        return planned

    @cached_property
    def events(self) -> pl.DataFrame:
        """Single events, up to the number that the scenario requests."""
        return self.scan("events").collect()

    @cached_property
    def per_run(self) -> pl.DataFrame:
        """One row per successful run with every metric of `weir list metrics`."""
        runs = self.runs.filter(pl.col("status") == "ok")
        latencies = self.scan("requests").select("run", "latency_ms").collect()
        values = metrics.per_run(runs, self.flows, self.links, self._sharing, latencies)
        return runs.select("run", "label", "stack", "repeat", "seed", *self.swept).join(
            values, on="run", how="left"
        )

    @cached_property
    def curves(self) -> dict[int, list[Curve]]:
        """What each flow of each run had delivered at any time, by the number of the run."""
        from weir.dynamics.curves import curves

        columns = ("run", "flow", "t_s", "goodput_mbps")
        return curves(self.scan("samples").select(columns).collect(), self.flows)

    @cached_property
    def shared_runs(self) -> frozenset[int]:
        """The runs with at least two flows."""
        flows = self.flows.group_by("run").agg(pl.col("flow").n_unique())
        return frozenset(flows.filter(pl.col("flow") > 1)["run"])

    @property
    def cases(self) -> list[dict[str, Any]]:
        """The cases in the order of the command: label, series, stack, point, scenario."""
        cases: list[dict[str, Any]] = self.manifest["cases"]
        return cases

    @property
    def swept(self) -> list[str]:
        """The keys that the sweep varied."""
        keys: list[str] = self.manifest["sweep"]
        return keys

    @property
    def failures(self) -> dict[str, str]:
        """The error of each failed run."""
        failed: dict[str, str] = self.manifest["runs"]["failed"]
        return failed

    @property
    def where(self) -> str:
        """The world of the runs, as in ``in world kernel``; empty for the simulator.

        It is empty, too, where several meet: `mixture` names them.
        """
        if len(self.worlds) != 1 or SIM in self.worlds:
            return ""
        (world,) = self.worlds
        return f"in {SPOKEN.get(world, f'world {world}')}"

    @property
    def worlds(self) -> dict[str, list[str]]:
        """The labels of the cases of each world."""
        found: dict[str, list[str]] = {}
        for case in self.cases:
            found.setdefault(case.get("world", SIM), []).append(case["label"])
        return found

    @property
    def mixture(self) -> str:
        """Which cases ran in which world, in a sentence; empty if all ran in one."""
        if len(self.worlds) < 2:
            return ""
        parts = [
            f"{_some(labels)} in {IN_WORDS.get(world, f'world {world}')}"
            for world, labels in self.worlds.items()
        ]
        return (
            f"The cases ran in different worlds: {'; '.join(parts)}. Differences between them are "
            "also differences of their worlds."
        )

    @property
    def caution(self) -> str:
        """What to bear in mind with every number here: that the machine could not keep up.

        Empty where it could, and where time is virtual.
        """
        health = self.manifest.get("health", {})
        return f"bad verdict: {health['verdict']}" if health.get("warnings") else ""

    @property
    def silence(self) -> str:
        """How many flows delivered nothing, in a sentence; empty if all delivered something."""
        flows = self.flows
        if "delivered_bytes" not in flows.columns:  # transfers of files
            return ""
        silent = flows.filter(pl.col("delivered_bytes") == 0).height
        return f"{silent} of {flows.height} flows delivered no byte." if silent else ""

    def health(self, label: str) -> str | None:
        """The verdict on the runs of a case; None where time is virtual."""
        if "health" not in self.runs.columns:
            return None
        own = self.runs.filter((pl.col("label") == label) & pl.col("health").is_not_null())
        bad = own.filter(pl.col("health") != "good")["health"]
        if own.is_empty():
            return None
        return f"bad in {bad.len()} of {own.height} runs: {bad[0]}" if bad.len() else "good"

    def scan(self, table: str) -> pl.LazyFrame:
        """A table as a lazy frame: of memory, if it is small, else of its file at each use."""
        if table not in (*TABLES, *OPTIONAL):
            raise InputError(unknown("table", table, TABLES))
        if table not in self._opened:
            self._opened[table] = self._open(f"{table}.parquet")
        return self._opened[table]

    def _open(self, file: str) -> pl.LazyFrame:
        self._verify(file)
        try:
            found = pl.scan_parquet(self.path / file)
            found.collect_schema()
            return found.collect().lazy() if self._unpacked[file] <= _KEPT_BYTES else found
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
            raise InputError(f"{self.path / file}: damaged: no table in Parquet") from None

    def verify(self) -> None:
        """Compares every table with its checksum in the manifest.

        Raises:
            InputError: one is missing or damaged.
        """
        for file in self.manifest.get("tables", {}):
            self._verify(file)

    def _verify(self, file: str) -> None:
        if file in self._unpacked:
            return
        path = self.path / file
        if not path.is_file():
            raise InputError(f"{path}: damaged: there is no such table")
        digest = self.manifest.get("tables", {}).get(file)
        try:
            unpacked = parquet.unpacked_bytes(path)
            if digest is not None and disk.sha256(path) != digest:
                raise InputError(f"{path}: damaged: its SHA-256 is not that in {manifest.FILE}")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        self._unpacked[file] = unpacked

    def to_pandas(self, table: str) -> pd.DataFrame:
        """A table for pandas.

        Raises:
            InputError: there is no such table, or pandas is not installed.
        """
        for package in ("pandas", "pyarrow"):
            imported(package, "pandas", "a pandas frame")
        return self.scan(table).collect().to_pandas()

    def values(self, label: str, metric: str) -> dict[int, float | None]:
        """The value of a metric in each repeat of a case, by seed.

        Raises:
            InputError: there is no such case or metric.
        """
        if metric not in metrics.BY_NAME:
            raise InputError(unknown("metric", metric, metrics.BY_NAME))
        of_case = self._per_run_by_label.get(label)
        if of_case is None:
            self._known(label)
            return {}
        return dict(zip(of_case["seed"], of_case[metric], strict=True))

    def estimate(self, label: str, metric: str) -> Estimate:
        """The mean of a metric over the repeats of a case, with its 95 % interval.

        Raises:
            InputError: there is no such case or metric.
        """
        return mean_interval(self.values(label, metric).values(), metrics.BY_NAME[metric].bounds)

    def bin_s(self, label: str) -> float:
        """The usual bin of a case: a mean round trip of its slowest flow, at least 100 ms.

        Never shorter than the time between two samples.
        """
        of_case = self.flows.filter(pl.col("run").is_in(list(self._runs(label).values())))
        rtt_ms = of_case["rtt_ms_mean"].fill_nan(None).max() or 0.0
        sampled_s = [c.interval_s for run in self._runs(label).values() for c in self.curves[run]]
        return max(math.ceil(rtt_ms) / 1e3, SHORTEST_BIN_S, *sampled_s)  # type: ignore[arg-type]

    def convergence(
        self,
        label: str,
        flow: str | None = None,
        *,
        bin_s: float | None = None,
        epsilon: float = EPSILON,
        hold_s: float = HOLD_S,
        rule: Rule = "ratio",
        fair_mbps: float | None = None,
    ) -> dict[int, Wait | None]:
        """By seed: how long after `flow` began all shared fairly, until the next came or went.

        `flow` is a name, that of the flow which starts last if left out; see
        `dynamics.convergence` for the rest and `censoring.summarised` to put repeats together.
        None where the flow was never seen next to another.

        Raises:
            InputError: there is no such case or flow, or the bins are too narrow.
        """
        from weir.dynamics import convergence as dynamics

        width = bin_s or self.bin_s(label)
        found: dict[int, Wait | None] = {}
        for seed, epoch in self._epochs(label, flow, "joined"):
            found[seed] = None
            if epoch is not None and len(epoch.active) > 1:
                found[seed] = dynamics.convergence(
                    epoch.active,
                    epoch.start_s,
                    epoch.end_s,
                    bin_s=width,
                    epsilon=epsilon,
                    hold_s=hold_s,
                    rule=rule,
                    fair_mbps=fair_mbps,
                )
        return found

    def reclaim(
        self,
        label: str,
        flow: str | None = None,
        *,
        bin_s: float | None = None,
        share: float = RECLAIMED,
        hold_s: float = HOLD_S,
    ) -> dict[int, Wait | None]:
        """By seed: how long after `flow` ended the others held what it had.

        `flow` is a name, that of the first flow to leave others behind if left out; see
        `dynamics.reclaim`. None if the flow did not end or no other flow was left.

        Raises:
            InputError: there is no such case or flow, or the bins are too narrow.
        """
        from weir.dynamics import convergence as dynamics

        width = bin_s or self.bin_s(label)
        found: dict[int, Wait | None] = {}
        for seed, epoch in self._epochs(label, flow, "left"):
            found[seed] = None
            if epoch is not None:
                found[seed] = dynamics.reclaim(
                    epoch.active,
                    epoch.left,
                    epoch.start_s,
                    epoch.end_s,
                    bin_s=width,
                    share=share,
                    hold_s=hold_s,
                )
        return found

    def changes(self, label: str) -> list[Observed]:
        """Every coming and going of flows in a case, over its repeats, at bins of two widths.

        Raises:
            InputError: there is no such case.
        """
        runs = self._runs(label).values()
        if self.shared_runs.isdisjoint(runs):
            return []
        from weir.dynamics.sharing import observed

        widths = sorted({fine := self.bin_s(label), max(fine, COARSE_BIN_S)})
        return observed([self.curves[run] for run in runs], widths)

    def jain_over_time(self, label: str, bin_s: float | None = None) -> pl.DataFrame:
        """Jain's index per bin of every repeat: `seed`, `t_s`, `flows`, `jain_index`.

        Raises:
            InputError: there is no such case, or the bins are too narrow.
        """
        from weir.dynamics import convergence as dynamics

        width = bin_s or self.bin_s(label)
        return pl.concat(
            dynamics.jain_over_time(self.curves[run], width).select(
                pl.lit(seed).alias("seed"), pl.all()
            )
            for seed, run in self._runs(label).items()
        )

    def request_percentiles(
        self,
        label: str,
        percents: Sequence[float] = PERCENTS,
        *,
        flows: Collection[str] | None = None,
    ) -> list[Percentile]:
        """Percentiles of the request latencies of a case, its repeats pooled, in ms.

        Pooled are all flows, or those called `flows`. They are refused where the table does not
        have every request (`measure.requests`).

        Raises:
            InputError: there is no such case.
        """
        own = self.flows.filter(pl.col("run").is_in(list(self._runs(label).values())))
        if flows is not None:
            own = own.filter(pl.col("name").is_in(list(flows)))
        rows = self.scan("requests").select("run", "flow", "latency_ms")
        rows = rows.join(own.lazy(), on=["run", "flow"], how="semi")
        missing = int(own["requests"].sum()) - int(own["requests_kept"].sum())
        return percentiles(rows.collect()["latency_ms"], percents, missing=missing)

    def measured(self) -> list[metrics.Metric]:
        """The metrics that have a value in at least one run."""
        return list(self._measured)

    def summary(self) -> pl.DataFrame:
        """One row per case and metric: mean, 95 % interval, number of repeats."""
        rows = []
        for case in self.cases:
            for metric in self.measured():
                e = self.estimate(case["label"], metric.name)
                rows.append((case["label"], metric.name, e.mean, e.lo, e.hi, e.n))
        schema: dict[str, Any] = dict.fromkeys(("label", "metric"), pl.String)
        schema |= {**dict.fromkeys(("mean", "lo", "hi"), pl.Float64), "n": pl.Int64}
        return pl.DataFrame(rows, schema, orient="row")

    @cached_property
    def _measured(self) -> tuple[metrics.Metric, ...]:
        found = self.per_run.select(pl.all().is_not_null().any()).row(0, named=True)
        return tuple(metric for metric in metrics.METRICS if found[metric.name])

    @cached_property
    def _per_run_by_label(self) -> dict[str, pl.DataFrame]:
        parts = self.per_run.partition_by("label", as_dict=True)
        return {str(label): part for (label,), part in parts.items()}

    @cached_property
    def _has_arrivals(self) -> bool:
        """Whether any flow made connections; results of an older version have no such table."""
        written = (self.path / "arrivals.parquet").exists()
        return written and self.scan("arrivals").select(pl.len()).collect().item() > 0

    @property
    def _sharing(self) -> pl.DataFrame:
        if not self.shared_runs:
            return pl.DataFrame(schema={"run": pl.UInt32})
        from weir.dynamics.sharing import per_run

        return per_run(self.curves)

    def _runs(self, label: str) -> dict[int, int]:
        """The successful runs of a case by their seed."""
        self._known(label)
        own = self.runs.filter((pl.col("label") == label) & (pl.col("status") == "ok"))
        return dict(own.select("seed", "run").iter_rows())

    def _known(self, label: str) -> None:
        """Refuses the label of no case."""
        labels = [case["label"] for case in self.cases]
        if label not in labels:
            raise InputError(unknown("case", label, labels))

    def _epochs(
        self, label: str, flow: str | None, change: Literal["joined", "left"]
    ) -> Iterator[tuple[int, Epoch | None]]:
        """By seed, the epoch that begins when a flow joins or leaves."""
        from weir.dynamics import convergence as dynamics

        for seed, run in self._runs(label).items():
            names = [curve.name for curve in self.curves[run]]
            if flow is not None and flow not in names:
                raise InputError(unknown("flow", flow, names))
            changes = {
                curve.name: epoch
                for epoch in dynamics.epochs(self.curves[run])
                for curve in (epoch.joined if change == "joined" else epoch.left)
            }
            in_order = list(changes.values())
            default = in_order[-1 if change == "joined" else 0] if in_order else None
            yield seed, default if flow is None else changes.get(flow)

    def __repr__(self) -> str:
        done, planned = self.manifest["runs"]["ok"], self.manifest["runs"]["planned"]
        return f"<weir.Results {self.manifest['name']}: {done} of {planned} runs, {self.path}>"


def _some(labels: Sequence[str]) -> str:
    """Few labels by name, many by their number."""
    return ", ".join(labels) if len(labels) <= _FEW else f"{len(labels)} cases"

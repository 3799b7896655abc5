"""What every flow and the bottleneck of every run got, by case and by seed."""

from __future__ import annotations

from collections.abc import Mapping

from weir.results.results import Results


class Contests:
    """What every flow of every run got, by case and by seed."""

    def __init__(self, results: Results) -> None:
        runs = results.runs.filter(status="ok").select("run", "label", "seed")
        self._flows = {
            (str(label), str(name)): own
            for (label, name), own in results.flows.join(runs, on="run")
            .partition_by("label", "name", as_dict=True)
            .items()
        }
        links = results.links.filter("monitored").sort("run", "link").unique("run", keep="first")
        self._links = {
            str(label): own
            for (label,), own in links.join(runs, on="run")
            .partition_by("label", as_dict=True)
            .items()
        }

    def flow(self, label: str, name: str, column: str) -> Mapping[int, float | None]:
        """A column of table `flows` for one flow of a case, by seed."""
        own = self._flows.get((label, name))
        return {} if own is None else dict(zip(own["seed"], own[column], strict=True))

    def link(self, label: str, column: str) -> Mapping[int, float | None]:
        """A column of table `links` for the bottleneck of a case, by seed."""
        own = self._links.get(label)
        return {} if own is None else dict(zip(own["seed"], own[column], strict=True))

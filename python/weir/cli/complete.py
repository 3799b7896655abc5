"""Shell completion."""

from __future__ import annotations

from collections.abc import Iterable

from weir import _native


def stacks(incomplete: str) -> list[str]:
    """Controllers by themselves, then combined with each recovery scheme."""
    catalogue = _native.catalogue()
    controllers = [item["name"] for item in catalogue["controllers"]]
    recoveries = [item["name"] for item in catalogue["recoveries"]]
    combined = (f"{recovery}/{name}" for recovery in recoveries for name in controllers)
    hosted = [item["name"] for item in catalogue["stacks"]]
    return _matching(incomplete, [*controllers, *combined, *hosted, "udp"])


def scenarios(incomplete: str) -> list[str]:
    """The scenarios that come with Weir; the shell adds files by itself."""
    from weir.scenario import source  # imported only for this completion

    return _matching(incomplete, source.library())


def worlds(incomplete: str) -> list[str]:
    """Every world."""
    from weir.scenario import source  # imported only for this completion

    return _matching(incomplete, source.worlds())


def formats(incomplete: str) -> list[str]:
    """Every format of `weir export`."""
    from weir.export import FORMATS  # imported only for this completion

    return _matching(incomplete, list(FORMATS))


def study_names(incomplete: str) -> list[str]:
    """Every study."""
    from weir.studies import catalogue  # imported only for this completion

    return _matching(incomplete, list(catalogue.studies()))


def suites(incomplete: str) -> list[str]:
    """Every suite of `weir conform`."""
    from weir.conform.cases.suites import suites as known  # imported only for this completion

    return _matching(incomplete, list(known()))


def _matching(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]

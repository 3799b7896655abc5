"""What the source concludes, beside its own numbers and ours."""

from __future__ import annotations

from collections.abc import Iterator

from weir.studies import Cell
from weir.studies.claims import claim
from weir.studies.udp_vs_tcp.measures import Tables, published_share, share

_LARGE = ("2.8MB", "14MB", "110MB")
_MUCH = 1.5
"""“Much faster” and “several times” begin here."""
_PROPORTIONAL = 0.15
"""A power of the size within this distance of 1 counts as proportional."""


def claims(tables: Tables) -> Iterator[Cell]:
    """Each sentence of the source that numbers can test."""
    yield from _on_one_machine(tables)
    yield from _on_two(tables)
    yield from _under_delay(tables)
    yield from _under_loss(tables)


def _on_one_machine(tables: Tables) -> Iterator[Cell]:
    where = "on one machine"
    for name in ("TCP", "UDPR"):
        yield _delivery(f"{name} is quite reliable {where}", tables, name, "local", least=100)
    says = f"UDP is exceptionally unreliable {where} beyond 2.8MB"
    yield _delivery(says, tables, "UDP", "local", sizes=("14MB", "110MB"), most=50)
    published, ours = tables.ratios("UDPR", "TCP", "local", sizes=_LARGE)
    yield claim(
        f"TCP is much faster than UDPR {where}",
        "time of UDPR over TCP's, from 2.8MB on",
        ours,
        None if ours.mean is None else ours.mean >= _MUCH,
        published=published.mean,
    )
    for name in ("TCP", "UDPR"):
        printed, found = tables.growths(name, "local")
        holds = None if found.mean is None else abs(found.mean - 1) <= _PROPORTIONAL
        yield claim(
            f"{name}'s time grows in proportion to the size {where}",
            "power of the size, from 2.8MB to 110MB",
            found,
            holds,
            published=printed.mean,
        )


def _on_two(tables: Tables) -> Iterator[Cell]:
    for name in ("TCP", "UDPR"):
        published, ours = tables.over("two hosts", "local", name, sizes=_LARGE)
        yield claim(
            f"between two hosts {name} takes several times as long",
            "time over that on one machine, from 2.8MB on",
            ours,
            None if ours.mean is None else ours.mean >= _MUCH,
            published=published.mean,
        )


def _under_delay(tables: Tables) -> Iterator[Cell]:
    where = "with 50 ms delay"
    says = f"UDP is no longer reliable {where}"
    yield _delivery(says, tables, "UDP", "50 ms delay", sizes=_LARGE, most=50)
    says = f"UDPR takes beyond reasonable time {where}"
    yield _delivery(says, tables, "UDPR", "50 ms delay", sizes=_LARGE, most=50)
    yield _delivery(f"TCP delivers {where}", tables, "TCP", "50 ms delay", least=100)
    yield _best(tables, where, "50 ms delay")


def _under_loss(tables: Tables) -> Iterator[Cell]:
    where = "with 25 % loss"
    for name in ("UDP", "UDPR"):
        says = f"{name} often breaks {where}"
        yield _delivery(says, tables, name, "25 % loss", sizes=_LARGE, most=50)
    yield _delivery(f"TCP delivers {where}", tables, "TCP", "25 % loss", least=100)
    yield _best(tables, where, "25 % loss")


def _best(tables: Tables, where: str, setting: str) -> Cell:
    published, ours = tables.ratios("UDPR", "TCP", setting)
    return claim(
        f"TCP is the best protocol {where}",
        "time of UDPR over TCP's, where both deliver",
        ours,
        None if ours.mean is None else ours.mean > 1,
        published=published.mean,
    )


def _delivery(
    says: str,
    tables: Tables,
    name: str,
    setting: str,
    *,
    sizes: tuple[str, ...] | None = None,
    least: float | None = None,
    most: float | None = None,
) -> Cell:
    """A claim on how many files arrive intact, in percent of those sent."""
    cells = list(tables.ours(name, setting, **({} if sizes is None else {"sizes": sizes})))
    found = share(cells)
    holds = None
    if found.mean is not None:
        holds = found.mean >= least if least is not None else found.mean < (most or 0)
    measured = "intact files, %" + (f", from {sizes[0]} on" if sizes else "")
    return claim(says, measured, found, holds, published=published_share(cells))

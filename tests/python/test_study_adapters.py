"""Study `adapters`: the verdicts of its cells, and one path of it as a user would run it."""

from __future__ import annotations

from made import described

from weir.cells.cells import cell
from weir.cells.protocol import Settings
from weir.statistics.intervals import Estimate
from weir.studies.adapters.measures import why

_TRANSPORTS = {"weir": {"why": ""}, "paced": {"why": "paces"}, "all": {"why": "all of it"}}
_GOODPUT: dict[str, float | str] = {"column": "goodput_mbps", "within": 0.05}
_DELAY: dict[str, float | str] = {"column": "queue_delay_ms_mean", "within": 0.1}


def test_a_cause_is_the_first_setting_with_which_our_transport_is_inside_the_bound() -> None:
    def found(theirs: float, paced: float, together: float) -> str:
        ours = {"weir": _just(4.0), "paced": _just(paced), "all": _just(together)}
        return why(_just(theirs), ours, _TRANSPORTS, _GOODPUT, 1.0)

    assert found(4.1, 8.0, 8.0) == ""
    assert found(8.0, 8.1, 8.0) == "; paces: 0.988 with it"
    assert found(8.0, 6.0, 8.0) == "; all of it: 1 with it"
    assert found(8.0, 6.0, 7.0) == "; no setting of the host explains it"


def test_delays_less_than_a_packet_apart_are_no_difference() -> None:
    def found(theirs: float) -> str:
        return why(_just(theirs), dict.fromkeys(_TRANSPORTS, _just(0.2)), _TRANSPORTS, _DELAY, 1.0)

    assert found(0.7) == "; 0.5 ms is less than a packet takes on the link"
    assert found(1.3) == "; no setting of the host explains it"


def test_a_ratio_outside_its_bound_differs_and_gives_both_values() -> None:
    study = described("adapters")
    ratio = Estimate(0.9, 0.88, 0.92, 3)
    cells = [
        cell("noq: goodput", "cubic", path, "ratio", own, note="9 against 10 Mbit/s")
        for path, own in (("1 BDP", Estimate(0.96, 0.95, 0.97, 3)), ("1/4 BDP", ratio))
    ]
    near, far = study.claims(cells, study.scope(Settings()))
    assert (near["row"], near["note"]) == ("cubic in noq, 1 BDP: goodput within 5%", "agrees")
    assert far["note"].startswith("differs: 9 against 10 Mbit/s")


def test_the_study_compares_what_it_should() -> None:
    full = described("adapters").scope(Settings("full"))
    assert len(full["controllers"]["noq"]) >= 10
    assert len(full["controllers"]["quinn"]) >= 6
    assert set(full["controllers"]["quinn"]) <= set(full["controllers"]["noq"])
    assert [name for name, own in full["transports"].items() if not own["why"]] == ["weir"]


def _just(mean: float) -> Estimate:
    return Estimate(mean, mean, mean, 3)

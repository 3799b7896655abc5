"""Study `adapters`: the verdicts of its cells, and one path of it as a user would run it."""

from __future__ import annotations

from weir import studies
from weir.stats import Estimate
from weir.studies.adapters.measures import Reason, why
from weir.studies.cells import cell
from weir.studies.described import DescribedStudy

_REASON: Reason = {"hosts": ["noq"], "paths": ["1 % loss"], "why": "noq paces"}


def test_a_reason_concerns_the_cells_that_it_names() -> None:
    def found(host: str, path: str) -> str:
        return why([_REASON], host, "cubic", path, "goodput")

    assert found("noq", "1 % loss") == "; noq paces"
    assert found("quinn", "1 % loss") == found("noq", "1 BDP") == ""


def test_a_ratio_outside_its_bound_differs_and_gives_both_values() -> None:
    study = _study()
    ratio = Estimate(0.9, 0.88, 0.92, 3)
    cells = [
        cell("noq: goodput", "cubic", path, "ratio", own, note="9 against 10 Mbit/s")
        for path, own in (("1 BDP", Estimate(0.96, 0.95, 0.97, 3)), ("1/4 BDP", ratio))
    ]
    near, far = study.claims(cells, study.scope(studies.Settings()))
    assert (near["row"], near["note"]) == ("cubic in noq, 1 BDP: goodput within 5%", "agrees")
    assert far["note"].startswith("differs: 9 against 10 Mbit/s")


def test_reasons_name_what_the_study_compares() -> None:
    study = _study()
    full = study.scope(studies.Settings("full"))
    assert len(full["controllers"]["noq"]) >= 10
    assert len(full["controllers"]["quinn"]) >= 6
    for reason in full["reasons"]:
        assert set(reason.get("hosts", [])) <= full["controllers"].keys()
        assert set(reason.get("controllers", [])) <= set(full["controllers"]["noq"])
        assert set(reason.get("paths", [])) <= full["paths"].keys()
        assert set(reason.get("bounds", [])) <= full["bounds"].keys()
        assert reason["why"]


def _study() -> DescribedStudy:
    study = studies.find("adapters")
    assert isinstance(study, DescribedStudy)
    return study

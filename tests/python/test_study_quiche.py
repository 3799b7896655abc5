"""Study `quiche-2370`: what counts as late, its verdicts, and where it runs."""

from __future__ import annotations

import pytest
from made import described
from prose import crowded

import weir
from weir.base.errors import InputError
from weir.cells import claims
from weir.cells.cells import cell
from weir.cells.protocol import Settings
from weir.statistics.intervals import Estimate
from weir.studies.quiche_2370.measures import in_time, late_percent


def test_incomplete_transfers_are_late_and_no_part_of_the_mean() -> None:
    waits = [3.0, None, 5.0, 10.5, 10.0]
    share = late_percent(waits)
    assert (share.mean, share.n) == (40.0, 5)
    # Wilson's interval of 2 of 5.
    assert share.lo == pytest.approx(11.76, abs=0.01)
    assert share.hi == pytest.approx(76.93, abs=0.01)
    assert in_time(waits).mean == 6.0
    assert late_percent([]).mean is None


def test_none_of_many_still_has_an_interval() -> None:
    share = late_percent([3.0] * 100)
    assert (share.mean, share.lo) == (0.0, 0.0)
    # z² / (n + z²).
    assert share.hi == pytest.approx(100 * 1.95996**2 / (100 + 1.95996**2), abs=0.001)


def test_a_claim_holds_if_the_published_share_is_in_the_interval() -> None:
    study = described("quiche-2370")
    shares = (Estimate(40.0, 21.9, 61.3, 20), Estimate(5.0, 0.9, 23.6, 20))
    places = (("quiche 0.26.0", "before the fix"), ("quiche 0.26.1", "after it"))
    cells = [cell("share", *place, "%", share) for place, share in zip(places, shares, strict=True)]
    scope = study.scope(Settings(world="kernel-virtual"))
    found = study.claims(cells, scope)
    assert [claims.verdict_of(one) for one in found] == ["agrees", "differs"]
    text = study.findings([*found, *cells], scope)
    assert text[0].startswith("“quiche 0.26.0, before the fix”: 8 of 20 transfers take over 10 s.")
    assert not crowded(text)


def test_it_runs_in_guests_by_default() -> None:
    study = described("quiche-2370")
    settings = Settings("full", world=study.worlds[0])
    try:
        plan = study.plan(settings)
    except InputError as error:
        if "is not built; `weir stack contender" not in str(error):
            raise
        pytest.skip(str(error))
    assert plan.needs_guests
    assert [len(plan.runs), len(plan.cases)] == [200, 2]
    assert plan.command.endswith("--seed 1 --world kernel --virtual")
    with pytest.raises(InputError, match="--world sim: study quiche-2370 runs with --world kernel"):
        weir.study("quiche-2370", world="sim")

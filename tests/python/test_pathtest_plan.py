"""The runs that options of a path test ask for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import Invoke

from weir.base.errors import InputError
from weir.pathtest import plan
from weir.pathtest.client import Client
from weir.pathtest.options import PathTest

CLIENT = cast(
    Client,
    cast(
        Any,
        SimpleNamespace(
            limits={"time_s": 60.0, "rate_bps": None},
            controls=["cubic", "reno"],
            server_controls=["reno", "cubic"],
        ),
    ),
)


def test_a_label_names_a_stack_in_every_case() -> None:
    wanted = PathTest(stack=["keen=rack/cubic(beta=0.9)", "rack/reno"], direction="up,down")
    orders = plan.orders(wanted, CLIENT)
    made = plan.test_plan("weir test", "example.org", orders, 1)
    keen, reno = "keen", "rack/reno"
    assert [case.series for case in made.cases] == [keen, reno, keen, reno]
    assert {case.stack for case in made.cases} == {"rack/cubic(beta=0.9)", reno}
    assert made.cases[0].labels == {keen: "rack/cubic(beta=0.9)"}
    assert made.cases[1].labels == {}
    assert [plan.order_of(case.scenario) for case in made.cases] == orders


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stack": ["a=rack/cubic", "a=rack/reno"]}, "--stack: a is given twice"),
        ({"stack": ["a!b=rack/cubic"]}, "label 'a!b' is not allowed"),
        ({"stack": ["=rack/cubic"]}, "the label before '=' is missing"),
        ({"stack": ["reno=rack/cubic"], "cc": "reno"}, "reno is a congestion control of --cc"),
    ],
)
def test_labels_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        plan.orders(PathTest(**options), CLIENT)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--stack", "rack/cubci"), "did you mean cubic?"),
        (("--cc", "no_such_control"), "--cc no_such_control: this machine: there is no control"),
        (("--cc", "reno", "--stack", "reno=rack/cubic"), "reno is a congestion control of --cc"),
        (("--direction", "upp"), "--direction upp: name one or more of up, down"),
    ],
)
def test_bad_input_is_refused_before_a_server_is_reached(
    invoke: Invoke, options: tuple[str, ...], message: str
) -> None:
    result = invoke("test", "127.0.0.1:9", *options)
    assert (result.exit_code, message in result.output) == (2, True), result.output

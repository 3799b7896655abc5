import pytest

import weir
from weir import _native


def test_the_package_and_its_core_agree_on_the_version() -> None:
    assert weir.__version__ == _native.version()


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("time", "40ms", 0.04),
        ("rate", "10mbit", 1e7),
        ("size", "64kib", 65536),
        ("ratio", "1.5%", 0.015),
    ],
)
def test_quantities_come_in_their_base_unit(kind: str, text: str, value: float) -> None:
    assert _native.parse_quantity(kind, text) == value  # type: ignore[arg-type]


def test_a_quantity_without_unit_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"'10' is not a rate: write a number with bit, kbit"):
        _native.parse_quantity("rate", "10")

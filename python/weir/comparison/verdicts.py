"""Summary of a comparison, one sentence per stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir.comparison.contrasts import NOTHING, Contrast

_WORK = ("fct_s", "goodput_mbps")
"""Main result of a sender: the first of these that was measured."""
_WAITING = "queue_delay_ms_mean"
SAID = frozenset({*_WORK, _WAITING})
"""The metrics of its sentences."""
_MOST = 12


def verdicts(found: Sequence[Contrast]) -> list[str]:
    """Returns one sentence per case, compared with its reference; none for many cases."""
    by_case: dict[str, dict[str, Contrast]] = {}
    for contrast in found:
        by_case.setdefault(contrast.label, {})[contrast.metric.name] = contrast
    if len(by_case) > _MOST:
        return []
    return [text for of_case in by_case.values() for text in _sentence(of_case)]


def _sentence(of_case: dict[str, Contrast]) -> Iterator[str]:
    work = next((of_case[name] for name in _WORK if name in of_case), None)
    waiting = of_case.get(_WAITING)
    measured = [contrast for contrast in (waiting, work) if contrast is not None]
    if not measured or any(contrast.verdict == "too few repeats" for contrast in measured):
        return
    first = measured[0]
    where = " with ".join(f"{key} {value}" for key, value in first.point.items())
    who = f"{first.series} against {first.reference}{where and f' at {where}'}"
    yield f"{who}: {'; '.join(_parts(measured))}."


def _parts(measured: Sequence[Contrast]) -> Iterator[str]:
    """Yields the relevant differences, then what is inconclusive; or that nothing arrived."""
    if any(contrast.is_empty for contrast in measured):
        yield NOTHING
        return
    changed = [c for c in measured if c.verdict == "significant" and c.is_relevant is not False]
    opened = [c for c in measured if c.is_open]
    same = [c for c in measured if c not in changed and c not in opened]
    if changed:
        text = " for ".join(_change(c) for c in changed)
        yield f"{text} at the same {_names(same)}" if same else text
    elif same:
        yield f"no relevant difference in {_names(same)}"
    for contrast in opened:
        yield f"{contrast.metric.title} {contrast.inconclusive}"


def _names(measured: Sequence[Contrast]) -> str:
    return " and ".join(contrast.metric.title for contrast in measured)


def _change(contrast: Contrast) -> str:
    """As `-61 % queue delay`."""
    mean, relative = contrast.difference.estimate.mean or 0.0, contrast.relative
    if relative is not None and relative >= 1:
        return f"{_two_digits(1 + relative)} times the {contrast.metric.title}"
    if relative is None:
        unit = contrast.metric.unit
        size = f"{contrast.metric.text(abs(mean))} {unit}".strip()
    else:
        size = f"{_two_digits(abs(relative) * 100)} %"
    return f"{'+' if mean > 0 else '−'}{size} {contrast.metric.title}"


def _two_digits(value: float) -> str:
    text = f"{value:.2g}"
    return f"{value:.0f}" if "e" in text else text

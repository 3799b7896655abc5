"""What the study says in words. Every sentence is computed from the cells; none is fixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, linear_regression, median

from weir.studies.lab_udp.calibration import RELAY_HANDLINGS, Model
from weir.studies.lab_udp.cells import StudyCell
from weir.studies.lab_udp.claims import verdicts
from weir.studies.lab_udp.experiment import RELAYS
from weir.studies.lab_udp.published import Source, mismatches
from weir.studies.lab_udp.throughputs import throughput_cells, throughput_words

WINDOWED = ("W=5", "W=10", "W=20", "W=30")
TICK_MS = 15.6
"""The timer of the laboratory's Windows, unless a program asks for a finer one."""

_FAR_OFF = 0.2
_AGREES = 0.15
_DUPLICATES = 3
_PUBLISHED_RUNS = 5
"""At most, behind each published mean."""
_TIE = 1.01
"""Two means closer than this are the same, where nothing but the hosts' jitter differs."""


class Cells:
    """The cells by table and row, each row in the order of its columns."""

    def __init__(self, cells: Sequence[StudyCell]) -> None:
        self.all = list(cells)

    def row(self, table: str, row: str) -> list[StudyCell]:
        """One row of a table."""
        return [cell for cell in self.all if (cell.table.id, cell.row.name) == (table, row)]

    def at(self, table: str, row: str, place: float) -> StudyCell:
        """The cell where what the table varies has this value."""
        return next(cell for cell in self.row(table, row) if cell.place == place)

    def windowed_delay(self) -> list[StudyCell]:
        """The cells of source 002 that have both a window and a delay."""
        rows = (self.row("002-delay", row) for row in WINDOWED)
        return [cell for row in rows for cell in row if cell.place > 0]


def findings(
    cells: Sequence[StudyCell], sources: Sequence[Source], models: Mapping[str, Model]
) -> list[str]:
    """The sentences, the main ones first."""
    found, model = Cells(cells), models["002"]
    return [
        _fit(found),
        _nature(found, model),
        _collapse(found, model),
        _ideal(found, model),
        *throughput_words(list(throughput_cells(cells, sources))),
        *_real_sockets(found),
        _reno_under_delay(found, model),
        *_loss(found),
        *verdicts(cells),
        *_differences(found, models),
        *_known_errors(sources),
        *(f"Source {name}. {text}" for name in models for text in models[name].derivation),
        *(_about(source) for source in sources),
    ]


def mean_error(cells: Sequence[StudyCell]) -> float:
    """The mean absolute error of the serial relay, relative to what was published."""
    return fmean(abs(cell.error) for cell in cells)


def _fit(cells: Cells) -> str:
    held = cells.windowed_delay()
    worst = max(held, key=lambda cell: abs(cell.error))
    return (
        f"Over the {len(held)} cells of source 002 that have a window and a delay, our serial "
        f"relay is off by {mean_error(held):.1%} on average (absolute), at worst by "
        f"{worst.error:+.0%} ({_where(worst)}). No constant of the model was fitted to them; "
        "how much the sender's time varies is not published but assumed, and it matters."
    )


def _nature(cells: Cells, model: Model) -> str:
    row = [cell for cell in cells.row("002-delay", "W=5") if cell.place > 0]
    slope = linear_regression([cell.place for cell in row], [cell.published for cell in row]).slope
    per_datagram = slope * 1e3 / model.datagrams
    is_serial = abs(per_datagram - 1) < abs(per_datagram - 1 / 5)
    verdict = (
        "So the relay handled one after the other: it was a slow server, and its socket's buffer "
        "was the queue."
        if is_serial
        else "So the relay did delay datagrams together."
    )
    return (
        "What the router really was: with a window of 5 each millisecond of “delay” adds "
        f"{per_datagram:.2f} ms per datagram to the published time. A server adds 1; a delay line, "
        f"which delays five datagrams together, a fifth. {verdict}"
    )


def _collapse(cells: Cells, model: Model) -> str:
    place = cells.row("002-delay", "W=5")[-1].place
    parts = []
    for row in WINDOWED:
        serial = cells.at("002-delay", row, place).serial
        waiting = serial.timeouts * model.timeout_ms / 1e3
        parts.append(
            f"{row} loses {serial.overflows:.0f} to overflow, sends each datagram "
            f"{serial.sent / model.datagrams:.1f} times and waits {waiting:.0f} of its "
            f"{serial.seconds:.1f} s for timeouts"
        )
    return (
        "Why larger windows looked worse: what the sender has out beyond the relay's buffer is "
        "dropped there, and go-back-N then sends all of it again, into the same full buffer. At "
        f"{place:g} ms, {'; '.join(parts)}."
    )


def _reno_under_delay(cells: Cells, model: Model) -> str:
    row = [cell for cell in cells.row("002-delay", "Reno") if cell.place > 0]
    first, last = row[0].serial, row[-1].serial
    return (
        f"Reno under delay: over its {len(row)} cells of source 002 our serial relay is off by "
        f"{mean_error(row):.1%} on average (absolute). From {row[0].place:g} to "
        f"{row[-1].place:g} ms a run waits {first.timeouts:.1f} to {last.timeouts:.1f} times for "
        f"the timer of {model.timeout_ms / 1e3:g} s and loses {first.overflows:.0f} to "
        f"{last.overflows:.0f} datagrams to overflow: each duplicate in fast recovery lets one "
        "more datagram into the full buffer."
    )


def _ideal(cells: Cells, model: Model) -> str:
    rows = [cells.row("002-delay", row) for row in WINDOWED]
    columns = [column for column in zip(*rows, strict=True) if column[0].place > 0]
    ordered = [column for column in columns if _gains_by_window(column)]
    small, large = columns[-1][0], columns[-1][-1]
    round_trip = small.place + RELAY_HANDLINGS * model.relay_ms + model.send_ms
    return (
        f"What a real delay would have shown: at {small.place:g} ms {small.row.name} takes "
        f"{small.line.seconds:.2f} s and {large.row.name} {large.line.seconds:.2f} s, "
        f"{small.published / small.line.seconds:.0f} and "
        f"{large.published / large.line.seconds:.0f} times less than published. The largest window "
        "is faster than the smallest, and no window slower than the next smaller one, in "
        f"{len(ordered)} of {len(columns)} delays. At {small.place:g} ms windows gain up to "
        f"{round_trip / model.send_ms:.0f} datagrams, which is all that this sender can prepare in "
        "a round trip."
    )


def _real_sockets(cells: Cells) -> Iterator[str]:
    """Of runs over real sockets, if there are any, how far they are from the simulated ones."""
    for relay in RELAYS:
        ratios = ((cell, cell.against_simulated(relay, "udp")) for cell in cells.all)
        pairs = [(cell, ratio) for cell, ratio in ratios if ratio is not None]
        if not pairs:
            continue
        near = sum(abs(ratio - 1) <= _AGREES for _, ratio in pairs)
        worst, ratio = max(pairs, key=lambda pair: abs(pair[1] - 1))
        name, where = relay.replace("_", " "), f"{_where(worst)} in {worst.table.id}"
        yield (
            f"Real sockets, {name}: through a relay in real time a transfer "
            f"takes {median(ratio for _, ratio in pairs):.3f} times the simulated time of the same "
            f"seed (median over the cells); {near} of {len(pairs)} cells agree within "
            f"{_AGREES:.0%}, the farthest is {where} ({ratio - 1:+.0%})."
        )


def _gains_by_window(column: Sequence[StudyCell]) -> bool:
    times = [cell.line.seconds for cell in column]
    pairs = pairwise(times)
    return times[-1] < times[0] and all(later <= _TIE * earlier for earlier, later in pairs)


def _loss(cells: Cells) -> Iterator[str]:
    published, ours = [], []
    for waiting in cells.row("002-loss", "stop-and-wait"):
        if waiting.place >= 4:
            for row in WINDOWED:
                cell = cells.at("002-loss", row, waiting.place)
                published.append(waiting.published / cell.published)
                ours.append(waiting.serial.seconds / cell.serial.seconds)
    yield (
        f"Under loss of 4 % and more stop-and-wait is {min(published):.0f} to "
        f"{max(published):.0f} times slower than the windowed rows as published, "
        f"{min(ours):.0f} to {max(ours):.0f} times in our runs: every loss costs it a timeout."
    )
    for reno in cells.row("002-loss", "Reno"):
        fixed = cells.at("002-loss", "W=30", reno.place)
        if reno.place >= 8:
            yield (
                f"At {reno.place:g} % loss Reno takes {reno.published / fixed.published:.1f} times "
                f"as long as the fixed window of 30 as published, "
                f"{reno.serial.seconds / fixed.serial.seconds:.1f} times in our runs, with "
                f"{reno.serial.timeouts:.1f} timeouts against {fixed.serial.timeouts:.1f}: a "
                "window that losses have made small leaves too few duplicates."
            )


def _differences(cells: Cells, models: Mapping[str, Model]) -> Iterator[str]:
    yield from _late_timer(cells, models["002"])
    yield from _tail_losses(cells, models["002"])
    yield from _reno_under_loss(cells, models["002"])
    yield from _other_router(cells, models["000"])
    yield from _short_timeout(cells, models["000"])
    yield from _far_rows(cells)


def _late_timer(cells: Cells, model: Model) -> Iterator[str]:
    row = [cell for cell in cells.row("002-delay", "W=5") if cell.place > 0]
    late = [(cell.published - cell.serial.seconds) * 1e3 / model.datagrams for cell in row]
    if fmean(late) > 0:
        yield (
            f"Where ours is faster: in row W=5, in which the relay never rests, the published "
            f"times exceed ours by {min(late):.1f} to {max(late):.1f} ms per datagram, "
            f"{fmean(late):.1f} ms on average. The model sleeps exactly; a sleep that ends with a "
            f"timer tick of {TICK_MS} ms, as on these systems, is late by {TICK_MS / 2:.1f} ms on "
            "average."
        )


def _tail_losses(cells: Cells, model: Model) -> Iterator[str]:
    last = [cells.row("002-loss", row)[-1] for row in WINDOWED]
    loss, timeout = last[0].place, model.timeout_ms / 1e3
    share = 1 - (1 - loss / 100) ** _DUPLICATES
    extra = [cell.published - cell.row.times[0] for cell in last]
    timeouts = [cell.serial.timeouts for cell in last]
    if fmean(extra) < share * timeout:
        yield (
            f"Where ours is slower: at {loss:g} % loss the published windowed rows take "
            f"{min(extra):.2f} to {max(extra):.2f} s longer than without loss; our runs contain "
            f"{min(timeouts):.1f} to {max(timeouts):.1f} timeouts of {timeout:g} s each. The loss "
            f"of one of the last {_DUPLICATES} datagrams leaves too few duplicates behind it and "
            f"waits for the timer, which happens to {share:.0%} of all transfers and alone costs "
            f"{share * timeout:.2f} s on average. Nothing in the printed description avoids it, so "
            "those means of three or five runs were low by chance, or the program did more than "
            "its description says."
        )


def _reno_under_loss(cells: Cells, model: Model) -> Iterator[str]:
    """Cells whose published means allow no timeout in their runs, while ours have some."""
    row, timeout = cells.row("002-loss", "Reno"), model.timeout_ms / 1e3
    lossy = [cell for cell in row if cell.place > 0]
    extra = {cell.place: cell.published - row[0].published for cell in lossy}
    without = [cell for cell in lossy if extra[cell.place] < timeout / _PUBLISHED_RUNS]
    ours = [cell.serial.timeouts for cell in without]
    if without and fmean(ours) > 1 / _PUBLISHED_RUNS:
        yield (
            f"Reno under loss: up to {without[-1].place:g} % the published times exceed the one "
            f"without loss by at most {max(extra[cell.place] for cell in without):.2f} s, so no "
            f"run can have waited for its timer of {timeout:g} s; ours wait {min(ours):.1f} to "
            f"{max(ours):.1f} times. In the printed state machine a datagram that is lost again "
            "in fast recovery, or among the last three, waits for the timer."
        )


def _other_router(cells: Cells, model: Model) -> Iterator[str]:
    idle, first = cells.row("000-delay", "stop-and-wait")[:2]
    jump = (first.published - idle.published) * 1e3 / model.datagrams
    ours = (first.serial.seconds - idle.serial.seconds) * 1e3 / model.datagrams
    if jump > 2 * ours:
        yield (
            f"Source 000 used another router: from {idle.place:g} to {first.place:g} ms its "
            f"stop-and-wait gains {jump:.0f} ms for each of {model.datagrams} datagrams, where a "
            f"relay that sleeps {first.place:g} ms adds {ours:.0f}. What it adds besides is not "
            "known and not in the model."
        )
    narrow, wide = (cells.row("000-loss", row) for row in ("W=8", "W=16"))
    slower = [b.published / a.published for a, b in zip(narrow, wide, strict=True)]
    overflows = fmean(cell.serial.overflows for cell in wide)
    if min(slower) > 1 and overflows < 1:
        yield (
            f"Source 000 without delay: a window of 16 is {min(slower):.1f} to {max(slower):.1f} "
            f"times slower than one of 8 as published. Its report blames overflowing buffers; in "
            f"our model, whose relay keeps up with the sender, there are {overflows:.0f} overflows "
            "per run. The sender must have sent its window faster than the prepared pace that the "
            "model takes over from source 002."
        )


def _short_timeout(cells: Cells, model: Model) -> Iterator[str]:
    parts = []
    for row, window in (("W=8", 8), ("W=16", 16)):
        for cell in cells.row("000-delay", row):
            held = window * (cell.place + model.relay_ms)
            if held > model.timeout_ms:
                sent = cell.serial.sent / model.datagrams
                parts.append(f"{_where(cell)} {held:.0f} ms ({sent:.1f} times each datagram)")
    if parts:
        yield (
            f"Source 000, timeouts: the {model.timeout_ms:.0f} ms that stop-and-wait implies are "
            "shorter than the relay needs for a full window, so ours resends what is still "
            f"waiting: {', '.join(parts)}."
        )


def _far_rows(cells: Cells) -> Iterator[str]:
    parts = []
    for table in dict.fromkeys(cell.table.id for cell in cells.all):
        rows = dict.fromkeys(cell.row.name for cell in cells.all if cell.table.id == table)
        errors = {row: fmean(cell.error for cell in cells.row(table, row)) for row in rows}
        far = [f"{row} {error:+.0%}" for row, error in errors.items() if abs(error) >= _FAR_OFF]
        if far:
            parts.append(f"{table}: {', '.join(far)}")
    if parts:
        yield f"Rows that the serial relay misses on average: {'; '.join(parts)}."


def _known_errors(sources: Sequence[Source]) -> Iterator[str]:
    for source in sources:
        for table in source.tables:
            for row in table.rows:
                if row.repeats_row:
                    other, name = row.repeats_row
                    yield (
                        f"Error of source {source.id}: {table.id} ({row.printed}), row "
                        f"“{row.name}”, repeats row {name} of {other}. {row.note}"
                    )
        for wrong in mismatches(source):
            yield (
                f"Error of source {source.id}: {wrong.table}, {wrong.row} at {wrong.column}: the "
                f"printed throughput is {wrong.printed:g}, the file over the time "
                f"{wrong.computed:.2f}."
            )


def _about(source: Source) -> str:
    return (
        f"Source {source.id}: {source.title}; {source.published}; {source.repeats}. Relay: "
        f"{source.relay} Protocol: {source.recovery}"
    )


def _where(cell: StudyCell) -> str:
    return f"{cell.row.name} at {cell.table.heading(cell.column)}"

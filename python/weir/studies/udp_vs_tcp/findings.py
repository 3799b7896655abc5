"""What the numbers say, in sentences computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir.cells.cells import digits
from weir.cells.claims import TABLE, summary
from weir.cells.protocol import Cell, capitalised
from weir.studies.udp_vs_tcp.experiment import (
    CONTENDERS,
    PACKETS,
    READINGS,
    SETTINGS,
    SIZES,
    STACK,
    Extent,
)
from weir.studies.udp_vs_tcp.measures import Tables, whole
from weir.studies.udp_vs_tcp.published import Source


def findings(cells: Sequence[Cell], source: Source, extent: Extent, place: str) -> list[str]:
    """The main ones first."""
    tables = Tables(source, [found for found in cells if found["table"] != TABLE])
    claims = [found for found in cells if found["table"] == TABLE]
    return [
        summary(claims, "of the source"),
        *_deliveries(tables),
        *_where_it_broke(tables),
        *_against_tcp(tables),
        *_directions(tables),
        *_limits(tables, source),
        *_unreliable(tables),
        *_how(extent, place),
        *_about(source),
    ]


def _deliveries(tables: Tables) -> Iterator[str]:
    """How many cells are complete, ours and the source's."""
    for name in ("UDPR", "TCP", "TCP bbr"):
        own = list(tables.ours(name))
        if not own:
            continue
        complete = sum(map(whole, own))
        who = capitalised(_NAMES[name])
        text = f"{who} delivers every file intact in {complete} of {len(own)} cells."
        printed = [f for f in own if f["published"] is not None]
        if printed:
            right = sum(f["published_complete"] == 5 for f in printed)
            text += f" Published: all in {right} of {len(printed)} cells."
        yield text


def _where_it_broke(tables: Tables) -> Iterator[str]:
    """What ours does where the published UDPR ended in words."""
    broken = [found for found in tables.ours("UDPR") if isinstance(found["published"], str)]
    if not broken:
        return
    times = [found["ours"]["mean"] for found in broken if found["ours"]["mean"] is not None]
    done = sum(map(whole, broken))
    text = (
        f"In {len(broken)} cells the published UDPR ended with words, as “timeout” or “beyond "
        f"reasonable time”; ours delivers all files in {done} of them"
    )
    yield f"{text}, and takes at most {digits(max(times))} s." if times else f"{text}."


def _against_tcp(tables: Tables) -> Iterator[str]:
    """Ours against the kernel's, setting by setting."""
    for setting in SETTINGS:
        parts = []
        for name in ("TCP", "TCP bbr"):
            published, ours = tables.ratios("UDPR", name, setting)
            if ours.mean is not None:
                note = f" (published: {digits(published.mean)})" if published.mean else ""
                parts.append(f"{digits(ours.mean)} times the time of {_NAMES[name]}{note}")
        if parts:
            yield f"“{capitalised(setting)}”: our reliable UDP takes {' and '.join(parts)}."
    yield "These are geometric means over the cells where both deliver."


def _directions(tables: Tables) -> Iterator[str]:
    """The three readings of the source's losses: how TCP fares, beside what is printed."""
    parts = []
    for setting in READINGS:
        own = list(tables.ours("TCP", setting))
        if not own:
            continue
        part = f"“{setting}”: {sum(map(whole, own))} of {len(own)} cells whole"
        ratio = tables.against_published(setting, READINGS[0], "TCP")
        if ratio.mean is not None:
            part += f", in {digits(ratio.mean)} times the published time where both have one"
        parts.append(part)
    if len(parts) == len(READINGS):
        yield (
            "The source does not say which way its packets were lost. Its table stands next to "
            "losses of acknowledgements alone, because only then TCP delivers as printed. The "
            f"kernel's TCP (CUBIC), each reading on its own. {'. '.join(parts)}."
        )


def _limits(tables: Tables, source: Source) -> Iterator[str]:
    """What the source's own bounds on waiting do."""
    own = [found for name in _LIMITED for s in READINGS for found in tables.ours(name, s)]
    if own:
        complete = sum(found["complete"] for found in own)
        tried = sum(found["tried"] for found in own)
        yield (
            f"With the source's limits {complete} of {tried} files arrive under loss. They are "
            f"MAX RETRANSMITS {source.max_retransmits} and MAX WAIT {source.max_wait}, taken as "
            "seconds."
        )


def _unreliable(tables: Tables) -> Iterator[str]:
    """What bare UDP loses, by setting."""
    parts = []
    for setting in SETTINGS:
        own = list(tables.ours("UDP", setting))
        lost = [f for f in own if f["received_percent"] is not None and not whole(f)]
        if own:
            part = f"“{setting}”: {len(own) - len(lost)} of {len(own)} cells whole"
            if lost:
                least = min(found["received_percent"] for found in lost)
                part += f", in the worst {digits(least)} % of the bytes"
            parts.append(part)
    if parts:
        yield f"Bare UDP (the stack udp: no acknowledgement, no pacing). {'. '.join(parts)}."


def _how(extent: Extent, place: str) -> Iterator[str]:
    largest, whole_packet = PACKETS["64KB"], PACKETS["1500B"]
    yield (
        "What a packet length is: for TCP the bytes of each write, as in the source; the kernel "
        "cuts its own segments, up to the MTU. For UDPR and UDP it is the data of a segment, to "
        "which headers of 60 bytes come. But “1500B”, the source's MTU, is the whole packet, with "
        f"{whole_packet.mss} bytes of data, and “64KB” the most that a segment holds, "
        f"{largest.mss} bytes. The links between the hosts have an MTU that lets each packet pass "
        "whole; on the source's network the larger ones went in fragments."
    )
    yield (
        "Two hosts are two network namespaces joined by an emulated link without a limit of rate; "
        "delay is that of each direction, so 50 ms make a round trip of 100 ms. With losses both "
        "ways a packet and its acknowledgement survive with 56 %, with loss of data or of "
        "ACKs alone with 75 %. The source names no direction."
    )
    yield (
        f"UDPR is ours over the stack {STACK}, TCP the kernel's with CUBIC, Linux's default, which "
        "the source does not name, and with BBR. A transfer may take "
        f"{extent.limit_s:g} s, and {extent.packet_limit_us:g} µs for each of its packets; after "
        "one that took longer, the same row is not tried again with files as large. Files are in "
        f"{place}."
    )


def _about(source: Source) -> Iterator[str]:
    yield f"Source {source.id}: {source.title}; {source.published}; {source.repeats}."
    for oddity in source.oddities:
        yield f"The source at odds with itself: {oddity}."
    missing = len(list(source.without_count()))
    yield f"Times printed without a count of complete transfers: {missing}; ours have one."
    row = source.table("local").row("TCP", "10KB")
    if row and row.cells["14MB"].complete == 0:
        yield (
            "Table 1 prints no complete transfer for TCP (10KB) at 14MB, although the text calls "
            "TCP reliable there: a slip, most likely."
        )
    yield from _faster_with_delay(source)


def _faster_with_delay(source: Source) -> Iterator[str]:
    """Where the published TCP is faster through more delay."""
    pairs = []
    for row in source.table("50 ms delay").rows:
        plain = source.table("two hosts").row(row.transport, row.packet)
        for size in SIZES:
            slow, quick = row.cells[size].seconds, plain.cells[size].seconds if plain else None
            if row.transport == "TCP" and slow and quick:
                pairs.append(slow < quick)
    if any(pairs):
        yield (
            f"The published TCP is faster with 50 ms delay than without in {sum(pairs)} of "
            f"{len(pairs)} cells."
        )


_LIMITED = tuple(contender.name for contender in CONTENDERS if contender.has_source_limits)

_NAMES = {
    "UDPR": "our reliable UDP",
    "TCP": "the kernel's TCP (CUBIC)",
    "TCP bbr": "the kernel's TCP (BBR)",
}

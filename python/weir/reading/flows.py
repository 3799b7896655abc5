"""The table of the flows of UDP in captures."""

from __future__ import annotations

import polars as pl

from weir.base.grid import Grid, counted, number

_HEADERS = (
    "client, server",
    "protocol",
    "s",
    "from client: MB",
    "Mbit/s",
    "from server: MB",
    "Mbit/s",
    "first answer, ms",
    "RTT by spin bit, ms: min / median",
)


def flow_grid(flows: pl.DataFrame, most: int) -> Grid:
    """The first `most` rows of table `udp_flows` for people."""
    is_one = flows["interface"].n_unique() == 1
    rows = [
        [
            f"{row['client']}, {row['server']}",
            *([] if is_one else [str(row["interface"])]),
            row["protocol"],
            f"{row['duration_s']:.2f}",
            f"{row['client_bytes'] / 1e6:.2f}",
            number(row["client_mbps"]),
            f"{row['server_bytes'] / 1e6:.2f}",
            number(row["server_mbps"]),
            number(row["first_answer_ms"]),
            _spin(row),
        ]
        for row in flows.head(most).iter_rows(named=True)
    ]
    left_out = flows.height - len(rows)
    more = f" {left_out} smaller flows are not shown." if left_out else ""
    note = (
        "The client is the end that sent first. Bytes are those after the UDP header. QUIC shows "
        "no losses and no acknowledgements; ends that do not use its spin bit show no RTT." + more
    )
    first, *others = _HEADERS
    headers = [first, *([] if is_one else ["interface"]), *others]
    return Grid(
        f"{counted(flows.height, 'flow')} of UDP", headers, rows, names=len(headers) - 7, note=note
    )


def _spin(row: dict[str, float | None]) -> str:
    least, median = row["spin_rtt_ms_min"], row["spin_rtt_ms_p50"]
    return "–" if least is None else f"{number(least)} / {number(median)}"

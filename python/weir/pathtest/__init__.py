"""`weir test` and `weir test --server`: a real path between two machines, measured.

The two ends have one control connection, over TCP (`channel`). The client decides what is measured
(`client`), the server takes part within its limits (`server`, `session`). Loads are connections of
the kernel's TCP (`load`) or datagrams at a rate (`datagrams`); probes measure round trips next to
them (`probes`, `responsiveness`). All modules but `tables`, `plan` and `summary` work without data
frames, so that a server starts quickly.
"""

from __future__ import annotations

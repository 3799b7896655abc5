"""How fast files move: `make bench-udp`, or `python -m weir.bench.udp`.

Our reliable UDP beside the kernel's TCP over the same paths, and beside QUIC where asked. All
contenders of a case take turns, and what counts are ratios within one turn, for a machine's speed
drifts. Every file is checked by its hash, and every transfer has two processes of its own.
"""

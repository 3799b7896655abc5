"""How fast files move: `make bench-udp`, or `python -m bench.udp`.

Our reliable UDP next to the kernel's TCP over the same paths, and next to QUIC and SRT with
`--peers`. All contenders of a case take turns, and ratios are taken within one turn, because a
machine's speed drifts. Every file is checked by its hash, and every transfer has two processes of
its own.
"""

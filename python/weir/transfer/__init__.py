"""Files over reliable UDP: sent, received, and timed between processes.

The time of a transfer runs from the sender's clock just before it connects to the receiver's clock
when the last byte is in its file. Both clocks are `CLOCK_MONOTONIC` of one machine, which
namespaces share. So it includes the handshake, and neither the start of a process nor the close.
"""

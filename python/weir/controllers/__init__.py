"""Congestion controllers in Python and in the kernel (BPF), and which of them may run."""

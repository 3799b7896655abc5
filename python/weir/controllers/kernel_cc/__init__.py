"""Congestion controls for this machine's kernel, as BPF programs (struct_ops).

    from weir.controllers import kernel_cc

    kernel_cc.install("vegas")      # ["bpf_vegas"]: ships with Weir
    kernel_cc.listed()              # the kernel's own, and what BPF added
    kernel_cc.remove("bpf_vegas")

A registration belongs to the kernel, not to the process that made it: it stays until it is removed
or the machine restarts, whatever happens to the process.
"""

from __future__ import annotations

from weir.controllers.kernel_cc.machine import KernelCcError, missing
from weir.controllers.kernel_cc.registry import Listed, install, listed, remove, shipped

__all__ = ["KernelCcError", "Listed", "install", "listed", "missing", "remove", "shipped"]

"""In a guest: calls of the kernel that Python's library does not have."""

from __future__ import annotations

import ctypes
import os

_CLOCK_MONOTONIC = 1
_TIMER_ABSTIME = 1
_POWER_OFF = 0x4321FEDC
_CLONE_NEWNS, _MNT_DETACH = 0x20000, 2
_SYNC_NOW = 7
"""Write now, and wait before and after: `sync_file_range(2)`."""

_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def mount(source: str, target: str, kind: str, data: str = "") -> None:
    """Mounts a file system.

    Raises:
        OSError: the kernel refuses.
    """
    words = (word.encode() for word in (source, target, kind))
    _checked(f"mount {kind} on {target}", _libc.mount(*words, 0, data.encode() or None))


def change_root(path: str) -> None:
    """Makes the mount point `path` the root of this process, in a mount namespace of its own.

    After `chroot` it could not create user namespaces.

    Raises:
        OSError: the kernel refuses.
    """
    _checked("unshare", _libc.unshare(_CLONE_NEWNS))
    os.chdir(path)
    # The old root is then on top of the new one, and is removed there (pivot_root(2)).
    _checked("pivot_root", _libc.pivot_root(b".", b"."))
    _checked("umount2", _libc.umount2(b".", _MNT_DETACH))


def _checked(call: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def sleep_until(seconds: int) -> None:
    """Sleeps until this moment of the guest's life."""
    moment = ctypes.byref(_Timespec(seconds, 0))
    while _libc.clock_nanosleep(_CLOCK_MONOTONIC, _TIMER_ABSTIME, moment, None) != 0:
        pass


def show(file: int) -> None:
    """Hands what was written to an open file to the host, without waiting for the host's disk."""
    _libc.sync_file_range(file, ctypes.c_long(0), ctypes.c_long(0), _SYNC_NOW)


def name_host(name: str) -> None:
    """Sets the host name."""
    _libc.sethostname(name.encode(), len(name.encode()))


def power_off() -> None:
    """Never returns; writes files first."""
    os.sync()
    _libc.reboot(_POWER_OFF)

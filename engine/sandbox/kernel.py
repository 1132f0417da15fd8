"""Calls to the Linux kernel that Python has no name for, by ctypes.

It is loaded in the supervisor of every command, so it imports nothing that is slow to load and nothing
of the house. Source: sandbox spec §5.2.
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47

MACHINE = os.uname().machine
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FILTER_FLAG_NEW_LISTENER = 1 << 3
_MAX_INSTRUCTIONS = 4096

_libc = ctypes.CDLL(None, use_errno=True)


def call(number: int, *arguments: int | bytes | None) -> int:
    """A system call by number; integers go as longs, bytes as a pointer to them.

    Raises:
        OSError: the kernel refused.
    """
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, *arguments: int) -> int:
    """An operation on this process.

    Raises:
        OSError: the kernel refused.
    """
    padded = [*arguments, 0, 0, 0, 0][:4]
    result: int = _libc.prctl(option, *(ctypes.c_ulong(value) for value in padded))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def set_capabilities(header: bytes, data: bytes) -> None:
    """The capset call; raises OSError."""
    call(_CAPSET[MACHINE], header, data)


def install_filter(program: bytes, *, listener: bool = False) -> int:
    """Load a seccomp filter into this thread for good; it needs no_new_privs.

    Args:
        program: BPF instructions of 8 bytes each.
        listener: ask for a descriptor on which the filter's notifications arrive.

    Returns:
        The listener's descriptor, closed on exec; 0 when none was asked for.

    Raises:
        OSError: the kernel refused; EBUSY when there is a listener above already.
    """
    count, rest = divmod(len(program), 8)
    if rest or not 0 < count <= _MAX_INSTRUCTIONS:
        raise ValueError(f"a filter of {len(program)} bytes is no BPF program")
    kept = ctypes.create_string_buffer(program, len(program))
    header = count.to_bytes(8, sys.byteorder) + ctypes.addressof(kept).to_bytes(8, sys.byteorder)
    flags = _SECCOMP_FILTER_FLAG_NEW_LISTENER if listener else 0
    return call(_SECCOMP[MACHINE], _SECCOMP_SET_MODE_FILTER, flags, header)

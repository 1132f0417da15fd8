"""Calls to the Linux kernel that Python has no name for, privileges given up for good, and signals set back.

It is loaded in the supervisor of every command, so it imports nothing that is slow to load and nothing of
ours. A command run by root has root's files and none of root's powers. Under `nohup`, or as a background
job of a script, some signals would be ignored, and what is ignored or blocked is handed on to every
program below.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import ctypes
import os
import sys

JAIL_FAILED = 125
"""Exit code of a child that could not be confined; the command did not run."""
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


def checked(result: int) -> int:
    """The result of a function of libc.

    Raises:
        OSError: it failed.
    """
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def call(number: int, *arguments: int | bytes | None) -> int:
    """A system call by number; integers go as longs, bytes as a pointer to them.

    Raises:
        OSError: the kernel refused.
    """
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return checked(_libc.syscall(ctypes.c_long(number), *converted))


def prctl(option: int, *arguments: int) -> int:
    """An operation on this process.

    Raises:
        OSError: the kernel refused.
    """
    padded = [*arguments, 0, 0, 0, 0][:4]
    return checked(_libc.prctl(option, *(ctypes.c_ulong(value) for value in padded)))


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


_LAST = 63
_VERSION_3 = 0x20080522
_AMBIENT_CLEAR_ALL = 4
_NOROOT, _NO_SETUID_FIXUP, _KEEP_CAPS_LOCKED, _NO_AMBIENT_RAISE = 0x01, 0x04, 0x20, 0x40
_SECUREBITS = (
    _NOROOT | _NOROOT << 1 | _NO_SETUID_FIXUP | _NO_SETUID_FIXUP << 1 | _KEEP_CAPS_LOCKED
    | _NO_AMBIENT_RAISE | _NO_AMBIENT_RAISE << 1
)  # fmt: skip


def forbid_new_privileges() -> None:
    """Make every later exec of this process gain nothing, setuid programs included; raises OSError."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Empty every capability set and lock it; the user stays the same.

    The bounding set and the secure bits need CAP_SETPCAP; for who has not got it no_new_privs withholds
    the same.

    Raises:
        OSError: the kernel refused, or something is left.
    """
    forbid_new_privileges()
    try:
        for number in range(_LAST + 1):
            if not _known(number):
                break
            prctl(PR_CAPBSET_DROP, number)
        prctl(PR_SET_SECUREBITS, _SECUREBITS)
    except PermissionError:
        pass  # said above
    prctl(PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    header = _VERSION_3.to_bytes(4, sys.byteorder) + bytes(4)
    set_capabilities(header, bytes(24))
    if left := held_capabilities():
        raise OSError(0, f"capabilities {left:#x} are left")


def _known(number: int) -> bool:
    """Whether the kernel knows the capability; OSError EINVAL says that it does not."""
    try:
        prctl(PR_CAPBSET_READ, number)
    except OSError:
        return False
    return True


def held_capabilities(status: str = "/proc/self/status") -> int:
    """The union of this process's permitted, effective, inheritable and ambient sets, as bits."""
    result = ("CapInh", "CapPrm", "CapEff", "CapAmb")
    with open(status, encoding="ascii") as file:  # noqa: PTH123 - pathlib costs start-up time
        sets = [int(line.split()[1], 16) for line in file if line.startswith(result)]
    union = 0
    for bits in sets:
        union |= bits
    return union


_FIXED = frozenset({_signal.SIGKILL, _signal.SIGSTOP})
PYTHONS_OWN = frozenset({_signal.SIGPIPE, _signal.SIGXFSZ})
"""What Python ignores by itself, so that a write fails and does not end the program."""


def set_to_default(kept: frozenset[int] = frozenset()) -> None:
    """Give every signal its default disposition and block none.

    Args:
        kept: signals whose disposition stays as it is.
    """
    for number in _signal.valid_signals() - _FIXED - kept:
        _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())

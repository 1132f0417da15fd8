"""Giving up privileges for good: a command run by root has root's files and none of root's powers.

Loaded in the supervisor. Source: sandbox spec §3.1 (root), §5.1 L8.
"""

from __future__ import annotations

import sys

from engine.sandbox import kernel

_LAST = 63
_VERSION_3 = 0x20080522
_AMBIENT_CLEAR_ALL = 4
_NOROOT, _NO_SETUID_FIXUP, _KEEP_CAPS_LOCKED, _NO_AMBIENT_RAISE = 0x01, 0x04, 0x20, 0x40
_SECUREBITS = (
    _NOROOT | _NOROOT << 1 | _NO_SETUID_FIXUP | _NO_SETUID_FIXUP << 1 | _KEEP_CAPS_LOCKED
    | _NO_AMBIENT_RAISE | _NO_AMBIENT_RAISE << 1
)  # fmt: skip


def never_gain() -> None:
    """Make every later exec of this process gain nothing, setuid programs included; raises OSError."""
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)


def drop_all() -> None:
    """Empty every capability set and lock it; the user stays the same.

    The bounding set and the secure bits need CAP_SETPCAP; for who has not got it no_new_privs withholds
    the same.

    Raises:
        OSError: the kernel refused, or something is left.
    """
    never_gain()
    try:
        for number in range(_LAST + 1):
            if not _known(number):
                break
            kernel.prctl(kernel.PR_CAPBSET_DROP, number)
        kernel.prctl(kernel.PR_SET_SECUREBITS, _SECUREBITS)
    except PermissionError:
        pass  # said above
    kernel.prctl(kernel.PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    header = _VERSION_3.to_bytes(4, sys.byteorder) + bytes(4)
    kernel.set_capabilities(header, bytes(24))
    if left := held():
        raise OSError(0, f"capabilities {left:#x} are left")


def _known(number: int) -> bool:
    """Whether the kernel knows the capability; OSError EINVAL says that it does not."""
    try:
        kernel.prctl(kernel.PR_CAPBSET_READ, number)
    except OSError:
        return False
    return True


def held(status: str = "/proc/self/status") -> int:
    """The union of this process's permitted, effective, inheritable and ambient sets, as bits."""
    wanted = ("CapInh", "CapPrm", "CapEff", "CapAmb")
    with open(status, encoding="ascii") as file:  # noqa: PTH123 - pathlib costs start-up time
        sets = [int(line.split()[1], 16) for line in file if line.startswith(wanted)]
    union = 0
    for bits in sets:
        union |= bits
    return union

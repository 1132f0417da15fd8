"""Landlock: which files, TCP ports and processes a program may reach, held by the kernel.

What this kernel supports is found by trial, never from its version. Rights that it does
not know are left out of a ruleset; `missing` says what that loses. Loaded in the supervisor, so it
imports only `kernel`.
"""

from __future__ import annotations

import os
import stat

from engine.sandbox import kernel

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK = 1 << 6, 1 << 7, 1 << 8, 1 << 9
MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = 1 << 10, 1 << 11, 1 << 12
REFER, TRUNCATE, IOCTL_DEV, RESOLVE_UNIX = 1 << 13, 1 << 14, 1 << 15, 1 << 16

BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
SCOPE_ABSTRACT_UNIX, SCOPE_SIGNAL = 1 << 0, 1 << 1

READ = EXECUTE | READ_FILE | READ_DIR
"""Below a read-only root: programs there may be run."""
LOOK = READ_FILE | READ_DIR
DEVICE = READ_FILE | WRITE_FILE | TRUNCATE
ALL_BUT_DEVICES = (1 << 17) - 1 & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
"""Below a read-write root: everything but making device nodes and commanding devices."""

_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV | RESOLVE_UNIX
_FS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1, 9: (1 << 17) - 1}
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_ABI_TCP, _ABI_SCOPE = 4, 6

_LOST = (
    (2, "files cannot be moved between directories"),
    (3, "truncate by path is refused by seccomp instead"),
    (4, "no TCP ports can be allowed"),
    (5, "devices that are open already can be commanded"),
    (6, "signals are held back by seccomp only, and sockets of the host by none of its names"),
)


def abi() -> int:
    """The version of Landlock that answers here; 0 when there is none."""
    try:
        return kernel.call(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def handled_files(version: int) -> int:
    """The rights on files that this version holds; versions later than those known add none."""
    return _FS_BY_ABI[max(known for known in _FS_BY_ABI if known <= max(version, 1))]


def handled_ports(version: int) -> int:
    """The rights on TCP ports that this version holds."""
    return BIND_TCP | CONNECT_TCP if version >= _ABI_TCP else 0


def scopes(version: int) -> int:
    """The kinds of contact with processes outside that this version can cut."""
    return SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL if version >= _ABI_SCOPE else 0


def missing(version: int) -> list[str]:
    """What is lost against the versions known, in words."""
    return [words for since, words in _LOST if version < since]


def create_ruleset(files: int = 0, ports: int = 0, scope: int = 0) -> int:
    """A descriptor of a ruleset that holds these rights and allows none of them; raises OSError."""
    words = [files, ports, scope]
    while len(words) > 1 and not words[-1]:  # an older kernel knows only the shorter form
        words.pop()
    attribute = b"".join(word.to_bytes(8, "little") for word in words)
    return kernel.call(_CREATE_RULESET, attribute, len(attribute), 0)


def allow_path(ruleset: int, path: str, access: int) -> bool:
    """Allow rights on what is at the path and below; False when nothing is there.

    Raises:
        OSError: the kernel refused the rule.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _ON_FILES  # a directory's right on a file is an error to the kernel
        rule = access.to_bytes(8, "little") + descriptor.to_bytes(4, "little")
        kernel.call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
    return True


def allow_port(ruleset: int, port: int, access: int) -> None:
    """Allow rights on a TCP port; raises OSError."""
    rule = access.to_bytes(8, "little") + port.to_bytes(8, "little")
    kernel.call(_ADD_RULE, ruleset, _NET_PORT, rule, 0)


def restrict_self(ruleset: int) -> None:
    """Put this thread and its future children under the ruleset, for good; raises OSError."""
    kernel.call(_RESTRICT_SELF, ruleset, 0)


def enter_signal_scope() -> None:
    """Let this process reach no process outside with a signal, and nothing else; raises OSError.

    Only processes that it starts from now on are inside.
    """
    ruleset = create_ruleset(scope=SCOPE_SIGNAL)
    try:
        restrict_self(ruleset)
    finally:
        os.close(ruleset)

r"""Opening files beneath a root by directory descriptors.

A path is never resolved first and opened afterwards: that check lost 23 % of races against a symlink
swapper. Either the kernel holds the boundary (`openat2` with RESOLVE_BENEATH) or every
component is opened without following links. Links that stay beneath the root are followed, for virtual
environments need them; absolute links are refused even when they point back in.

File names as text: every name can be shown on one line, typed, kept in JSON, and is the same name again.

What cannot be printed (bytes that are no UTF-8, control characters, marks that turn text around) stands as
`\xNN`, byte by byte, and a backslash that would read as such stands as `\x5c`.
"""

from __future__ import annotations

import errno
import os
import re
import struct
from collections import deque
from typing import Protocol

from engine.core.actions import ErrorCode
from engine.sandbox import kernel

_ESCAPE = re.compile(r"\\x(5c|7f|0[1-9a-f]|1[0-9a-f]|[89a-f][0-9a-f])")


def name_text(path: str) -> str:
    """A path of the file system, as `os.fsdecode` gives it, as text."""
    escaped = _ESCAPE.sub(lambda found: r"\x5c" + found[0][1:], path)
    if escaped.isprintable():
        return escaped
    return "".join(char if char.isprintable() else _bytes(char) for char in escaped)


def _bytes(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))


def parse_name(text: str) -> str:
    """The path that such a text stands for.

    Raises:
        UnicodeEncodeError: the text holds half a surrogate pair, which no file name can.
    """
    text.encode()
    named = _ESCAPE.sub(lambda found: os.fsdecode(bytes.fromhex(found[1])), text)
    return os.fsdecode(os.fsencode(named))


MAX_PATH_BYTES = 4095
MAX_NAME_BYTES = 255
MAX_LINKS = 40
O_PATH = getattr(os, "O_PATH", os.O_RDONLY)

_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_RETRIES = 200
"""openat2 answers EAGAIN while somebody renames directories; each retry is a few microseconds."""


class PathError(Exception):
    """A file operation that was not done, with the reason for programs and for people."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class SharedFileError(PathError):
    """A file has several names, and one may lie in another place: it could belong there."""

    def __init__(self, path: str, links: int) -> None:
        super().__init__(
            ErrorCode.NOT_ALLOWED,
            f"'{name_text(path)}' has {links} names (hard links), so it may belong to another place; have "
            "the operator put a copy of it here.",
        )


_CODES: dict[int, tuple[ErrorCode, str]] = {
    errno.ENOENT: (ErrorCode.NOT_FOUND, "does not exist"),
    errno.ENOTDIR: (ErrorCode.WRONG_TYPE, "is not a directory, or a part of the path is not one"),
    errno.EISDIR: (ErrorCode.WRONG_TYPE, "is a directory, not a file"),
    errno.ENXIO: (ErrorCode.WRONG_TYPE, "is a socket, device or pipe, not a regular file"),
    errno.ENODEV: (ErrorCode.WRONG_TYPE, "is a socket, device or pipe, not a regular file"),
    errno.EEXIST: (ErrorCode.EXISTS, "exists already"),
    errno.ENOTEMPTY: (ErrorCode.EXISTS, "exists already and is not empty"),
    errno.EXDEV: (ErrorCode.OUTSIDE_ROOT, "leads outside of the sandbox root through a symbolic link"),
    errno.ELOOP: (ErrorCode.WRONG_TYPE, "is a symbolic link that cannot be followed"),
    errno.EAGAIN: (ErrorCode.INTERNAL, "changed while it was opened; try again"),
    errno.ENAMETOOLONG: (ErrorCode.BAD_ARGUMENTS, "is too long for this file system"),
    errno.EINVAL: (ErrorCode.BAD_ARGUMENTS, "is not possible for this path"),
    errno.EACCES: (ErrorCode.PERMISSION, "is not accessible: permission denied"),
    errno.EPERM: (ErrorCode.PERMISSION, "is not accessible: the operation is not permitted"),
    errno.EROFS: (ErrorCode.PERMISSION, "lies on a read-only file system"),
    errno.ETXTBSY: (ErrorCode.PERMISSION, "is a program that is running"),
    errno.ENOSPC: (ErrorCode.NO_SPACE, "could not be written: no space is left on the disk"),
    errno.EDQUOT: (ErrorCode.NO_SPACE, "could not be written: the disk quota is used up"),
    errno.EFBIG: (ErrorCode.TOO_LARGE, "could not be written: the file would be too large"),
}


def refusal(error: OSError, path: str) -> PathError:
    """What a failed system call means for a path."""
    fallback = (ErrorCode.INTERNAL, f"failed: {os.strerror(error.errno or 0)}")
    code, text = _CODES.get(error.errno or 0, fallback)
    return PathError(code, f"'{name_text(path)}' {text}")


def relative_path(root: str, cwd: str, path: str) -> str:
    """The path relative to the root, without `.` and `..`; `.` is the root itself.

    Path and directory are text as `engine.sandbox.paths` has it, the answer is a name of the file system.
    `..` is taken away by words, as a shell's `cd` does. An absolute path is accepted when it lies below
    the root's own path.

    Raises:
        PathError: the path is empty, malformed, too long, or leaves the root.
    """
    if not path:
        raise PathError(ErrorCode.BAD_ARGUMENTS, "The path is empty; give a name, or '.' for this directory.")
    if "\0" in path:
        raise PathError(ErrorCode.BAD_ARGUMENTS, f"The path {path!r} holds a NUL character.")
    asked = path
    try:
        path, cwd = parse_name(path), parse_name(cwd)
    except UnicodeEncodeError:
        message = f"The path {asked!r} is not valid Unicode; write a byte that is no text as \\xNN."
        raise PathError(ErrorCode.BAD_ARGUMENTS, message) from None
    outside = PathError(
        ErrorCode.OUTSIDE_ROOT,
        f"{asked!r} is outside of the sandbox root; use a path relative to the root's directories.",
    )
    parts: list[str] = [] if cwd == "." else cwd.split("/")
    if path.startswith("/"):
        if path.rstrip("/") != root and not path.startswith(root + "/"):
            raise outside
        parts, path = [], path[len(root) :]
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise outside
            parts.pop()
        elif part not in ("", "."):
            _check_name(part)
            parts.append(part)
    joined = "/".join(parts)
    if len(os.fsencode(joined)) > MAX_PATH_BYTES:
        raise PathError(ErrorCode.BAD_ARGUMENTS, f"The path is longer than {MAX_PATH_BYTES} bytes.")
    return joined or "."


def _check_name(name: str) -> None:
    size = len(os.fsencode(name))
    if size > MAX_NAME_BYTES:
        shortened = f"{name[:40]}…"
        raise PathError(
            ErrorCode.BAD_ARGUMENTS, f"The name {shortened!r} has {size} bytes; {MAX_NAME_BYTES} is the most."
        )


class Opener(Protocol):
    """Opens what exists beneath a directory descriptor."""

    def open(self, root: int, path: str, flags: int) -> int:
        """A new descriptor, closed on exec. Raises OSError; EXDEV says that the path leads outside."""


class KernelOpener:
    """Lets the kernel hold the boundary: openat2, Linux 5.6 and later."""

    def open(self, root: int, path: str, flags: int) -> int:
        """See `Opener.open`."""
        how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
        raw = os.fsencode(path)
        if b"\0" in raw:  # ctypes would cut the path there
            raise OSError(errno.EINVAL, "NUL in path")
        for _ in range(_RETRIES):
            try:
                return kernel.call(_SYS_OPENAT2, root, raw, how, len(how))
            except OSError as error:
                refused = error
                if error.errno not in (errno.EAGAIN, errno.EINTR):
                    break
        raise refused


class WalkOpener:
    """Opens one component after the other and never lets the kernel follow a link.

    Portable; `..` in a link's target goes back to a descriptor that is held open, so that a directory
    moved meanwhile cannot lead outside.
    """

    def open(self, root: int, path: str, flags: int) -> int:
        """See `Opener.open`."""
        held = [os.dup(root)]
        try:
            return self._walk(held, deque(path.split("/")), flags | os.O_CLOEXEC)
        finally:
            for descriptor in held:
                os.close(descriptor)

    def _walk(self, held: list[int], parts: deque[str], flags: int) -> int:
        links = 0
        while parts:
            part = parts.popleft()
            if part == "..":
                if len(held) == 1:
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
                os.close(held.pop())
            elif part not in ("", "."):
                target = _link_target(held[-1], part)
                if target is not None:
                    links += 1
                    if links > MAX_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                    if target.startswith("/"):
                        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
                    parts.extendleft(reversed(target.split("/")))
                elif parts:
                    held.append(
                        os.open(part, O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held[-1])
                    )
                else:
                    return os.open(part, flags | os.O_NOFOLLOW, dir_fd=held[-1])
        return os.open(".", flags, dir_fd=held[-1])


def _link_target(directory: int, name: str) -> str | None:
    """Where the link points, or None when the name is no link."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise


def best_opener(root: int) -> Opener:
    """The kernel's opener where a trial call works, else the walk."""
    opener = KernelOpener()
    try:
        os.close(opener.open(root, ".", os.O_RDONLY | os.O_DIRECTORY))
    except OSError:
        return WalkOpener()
    return opener

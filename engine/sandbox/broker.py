"""Changes of metadata on behalf of a jailed program, beneath its own roots only.

Landlock does not hold chmod, chown and the setting of times. The filter hands these calls to the
supervisor, which does them itself: it opens the file beneath a root, by descriptors, and changes that
descriptor, so that nothing can be swapped in between. Set-id bits are dropped. Loaded in the supervisor.
Source: `seccomp_unotify(2)`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import struct

from engine.sandbox import kernel
from engine.sandbox.syscall_numbers import Numbers

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_OPENAT2 = 437
_BENEATH_NO_MAGIC = 0x08 | 0x02
_AT_FDCWD, _NOFOLLOW, _EMPTY_PATH = -100, 0x100, 0x1000
_MAX_PATH = 4096
_LAST_ADDRESS = (1 << 63) - 1
"""Beyond it lies the kernel; a seek could not even name it."""
_SET_ID = 0o6000
_CALLS = "chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat utime utimes futimesat utimensat"

_libc = ctypes.CDLL(None, use_errno=True)


class CallRefusedError(Exception):
    """The call is answered with an errno."""

    def __init__(self, code: int) -> None:
        super().__init__(os.strerror(code))
        self.code = code


def _signed(word: int) -> int:
    """The low 32 bits as a C int."""
    word &= 0xFFFFFFFF
    return word - (1 << 32) if word >= 1 << 31 else word


class Broker:
    """Answers the notifications of one filter.

    Args:
        listener: the filter's descriptor.
        roots: absolute paths, without links, below which metadata may be changed.
    """

    def __init__(self, listener: int, roots: list[str]) -> None:
        self.listener = listener
        self._roots = [(root, os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) for root in roots]
        numbers = Numbers(kernel.MACHINE)
        self._names = {number: name for name in _CALLS.split() for number in numbers.of(name)}

    def serve(self) -> bool:
        """Answer one call; False when nobody is left under the filter."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, notice, True)
        except InterruptedError:
            return True
        except OSError as error:
            return error.errno == errno.ENOENT and _hears(self.listener)  # ENOENT: the caller was killed
        identity, pid, _, number, _, _, *arguments = _NOTICE.unpack(notice)
        try:
            self._do(identity, pid, self._names[number], arguments)
            code = 0
        except CallRefusedError as refused:
            code = refused.code
        except OSError as error:
            code = errno.EPERM if error.errno == errno.EXDEV else error.errno or errno.EPERM
        try:
            fcntl.ioctl(self.listener, _SEND, _ANSWER.pack(identity, 0, -code, 0))
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
        return True

    def _do(self, identity: int, pid: int, name: str, arguments: list[int]) -> None:
        """Read what the call points to, make sure that it still waits, and do it."""
        caller = _Caller(pid)
        directory, path, follow, rest = _target(name, arguments, caller)
        times = _times(name, rest, caller)
        if not self._waits(identity):
            raise CallRefusedError(errno.EINTR)
        descriptor = self._opened(caller, directory, path, follow)
        try:
            _change(name, descriptor, rest, times)
        finally:
            os.close(descriptor)

    def _waits(self, identity: int) -> bool:
        """Whether the call is still pending, so that what was read was the caller's own memory."""
        try:
            fcntl.ioctl(self.listener, _IS_VALID, identity.to_bytes(8, "little"))
        except OSError:
            return False
        return True

    def _opened(self, caller: _Caller, directory: int, path: bytes | None, follow: bool) -> int:
        """A descriptor of the file that the call means, if it lies below a root."""
        if path is None:
            descriptor = os.open(f"/proc/{caller.pid}/fd/{directory}", os.O_PATH | os.O_CLOEXEC)
            if self._place(os.readlink(f"/proc/self/fd/{descriptor}")) is None:  # noqa: PTH115
                os.close(descriptor)
                raise CallRefusedError(errno.EPERM)
            return descriptor
        text = os.fsdecode(path)
        if not text:
            raise CallRefusedError(errno.ENOENT)
        if not text.startswith("/"):
            base = "cwd" if directory == _AT_FDCWD else f"fd/{directory}"
            text = f"{os.readlink(f'/proc/{caller.pid}/{base}')}/{text}"  # noqa: PTH115
        place = self._place(text)
        if place is None:
            raise CallRefusedError(errno.EPERM)
        root, beneath = place
        flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        how = struct.pack("=QQQ", flags, 0, _BENEATH_NO_MAGIC)
        return kernel.call(_OPENAT2, root, os.fsencode(beneath), how, len(how))

    def _place(self, path: str) -> tuple[int, str] | None:
        """The root that a path's words begin with, and the rest."""
        for root, descriptor in self._roots:
            if path == root:
                return descriptor, "."
            if path.startswith(f"{root}/"):
                return descriptor, path[len(root) :].lstrip("/") or "."
        return None


class _Caller:
    """Reads the memory of a process that waits for its answer."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def read(self, address: int, size: int) -> bytes:
        """Bytes at an address, fewer at the end of a mapping; the address is the caller's to choose."""
        if address > _LAST_ADDRESS:
            raise CallRefusedError(errno.EFAULT)
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:  # noqa: PTH123
            memory.seek(address)
            try:
                return memory.read(size) or b""
            except OSError:
                raise CallRefusedError(errno.EFAULT) from None

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """Signed words of 64 bits at an address."""
        result = self.read(address, 8 * count)
        if len(result) < 8 * count:
            raise CallRefusedError(errno.EFAULT)
        return struct.unpack(f"={count}q", result)

    def text(self, address: int) -> bytes:
        """The C string at an address."""
        page = 4096
        result = self.read(address, min(_MAX_PATH, page - address % page))
        if b"\0" not in result:
            result += self.read(address + len(result), _MAX_PATH - len(result))
        text, end, _ = result.partition(b"\0")
        if not end:
            raise CallRefusedError(errno.ENAMETOOLONG)
        return text


def _target(name: str, arguments: list[int], caller: _Caller) -> tuple[int, bytes | None, bool, list[int]]:
    """Directory, path (None: the descriptor itself), whether to follow a link, and the other arguments."""
    if name in ("fchmod", "fchown"):
        return _signed(arguments[0]), None, True, arguments[1:]
    if name in ("chmod", "chown", "lchown", "utime", "utimes"):
        return _AT_FDCWD, caller.text(arguments[0]), name != "lchown", arguments[1:]
    directory, rest = _signed(arguments[0]), arguments[2:]
    flags = {"fchmodat2": 3, "fchownat": 4, "utimensat": 3}.get(name)
    bits = arguments[flags] if flags else 0
    if not arguments[1]:
        if name in ("utimensat", "futimesat"):
            return directory, None, True, rest
        raise CallRefusedError(errno.EFAULT)
    path = caller.text(arguments[1])
    if not path and bits & _EMPTY_PATH:
        return directory, None, True, rest
    return directory, path, not bits & _NOFOLLOW, rest


def _times(name: str, rest: list[int], caller: _Caller) -> bytes | None:
    """The two timestamps of the call as `struct timespec`, None for now."""
    if "utime" not in name or not rest[0]:
        return None
    if name == "utime":
        accessed, modified = caller.words(rest[0], 2)
        return struct.pack("=4q", accessed, 0, modified, 0)
    words = caller.words(rest[0], 4)
    if name == "utimensat":
        return struct.pack("=4q", *words)
    if any(not 0 <= part < 1_000_000 for part in words[1::2]):
        raise CallRefusedError(errno.EINVAL)
    return struct.pack("=4q", words[0], words[1] * 1000, words[2], words[3] * 1000)


def _change(name: str, descriptor: int, rest: list[int], times: bytes | None) -> None:
    here = f"/proc/self/fd/{descriptor}"
    if "chmod" in name:
        os.chmod(here, rest[0] & 0o7777 & ~_SET_ID)  # noqa: PTH101
    elif "chown" in name:
        owner, group = (_signed(word) for word in rest[:2])
        kernel.checked(_libc.fchownat(descriptor, b"", owner, group, _EMPTY_PATH))
    else:
        kernel.checked(_libc.utimensat(descriptor, b"", times, _EMPTY_PATH))


def _hears(listener: int) -> bool:
    """Whether a process is still under the filter."""
    poller = select.poll()
    poller.register(listener)
    return not any(event & select.POLLHUP for _, event in poller.poll(0))

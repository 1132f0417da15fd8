"""Put in front of the batches of attempts that run inside of a jail; see `tests.security.inside`.

An attempt is a function of a name. It ends `through` when it did what it wanted, with the name of the error
that stopped it, or with `n.a.: …` where this machine lacks what it needs. Each runs in a process of its own.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

F: dict[str, Any] = json.loads(sys.argv[1])
"""What lies outside: see `outside` of the driver."""
OUTSIDE, COCKPIT, OTHER, PORT = str(F["outside"]), int(F["cockpit"]), int(F["other"]), int(F["port"])
HOME, STATE = str(F["home"]), str(F["state"])
SECRET, WORD = f"{OUTSIDE}/secret", "the secret"
CONTROL = bool(F["control"])
"""Whether there is no jail, to see what the attempt is worth; then it must do no harm."""
HERE = os.getcwd()
SUPERVISOR = os.getppid()
X86 = platform.machine() == "x86_64"
FOUND: dict[str, str] = {}
NO_CONTROL = "n.a.: not tried without a jail, for it would change the machine"
libc = ctypes.CDLL(None, use_errno=True)


class NotHereError(Exception):
    """This machine lacks what the attempt needs."""


class StoppedError(Exception):
    """The attempt came to nothing, without an error of the kernel's to show for it."""


def _stop(why: str) -> None:
    raise StoppedError(why)


def _opened(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


INHERITED = [number for number in range(3, 1024) if _opened(number)]


def raised() -> None:
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def call(number: int, *args: Any) -> int:
    """A system call by number."""
    converted = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    result: int = libc.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        raised()
    return result


def on(x86: int, other: int) -> int:
    return x86 if X86 else other


def outcome_of(work: Callable[[], object]) -> str:
    try:
        work()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error) or "refused")
    except subprocess.CalledProcessError as error:
        return f"exit {error.returncode}"
    except NotHereError as error:
        return f"n.a.: {error}"
    except (StoppedError, MemoryError, RuntimeError) as error:
        return str(error) or type(error).__name__
    return "through"


def attempt(name: str, *, control: bool = True) -> Callable[[Callable[[], object]], None]:
    """Register and make an attempt; `control` says whether it is harmless without a jail."""

    def run(work: Callable[[], object]) -> None:
        if CONTROL and not control:
            FOUND[name] = NO_CONTROL
            return
        restore()
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                signal.alarm(20)
                os.write(write, outcome_of(work).encode()[:4000])
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as file:
            outcome = file.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        FOUND[name] = outcome if outcome and status == 0 else f"signal {-status}"

    return run


def restore() -> None:
    """Without a jail, put back what the attempt before took away or changed."""
    if not CONTROL:
        return
    for path, text in F["files"].items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if not Path(path).exists() or Path(path).read_text() != text:
            Path(path).unlink(missing_ok=True)
            Path(path).write_text(text)
    os.chmod(SECRET, 0o644)


def sh(command: str) -> str:
    """What a shell command prints; raises when it fails."""
    done = subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True, text=True)
    return done.stdout


def tells(program: str, command: str, **env: str) -> Callable[[], None]:
    """An attempt to have a program tell the secret by a shell command."""

    def work() -> None:
        if shutil.which(program) is None:
            raise NotHereError(f"{program} is not installed")
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, **env}, check=False,
        )  # fmt: skip
        if WORD not in done.stdout + done.stderr:
            raise StoppedError("the secret was not told")

    return work


def reads(path: str) -> Callable[[], object]:
    return lambda: Path(path).read_bytes()


def appends(path: str) -> Callable[[], object]:
    def work() -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a") as file:
            file.write("x")

    return work


def first_of(*works: Callable[[], object]) -> Callable[[], object]:
    """An attempt in several ways: through when one of them is."""

    def work() -> None:
        last: OSError = OSError(errno.ENOENT, "no way was tried")
        for one in works:
            try:
                one()
            except OSError as error:
                last = error
            else:
                return
        raise last

    return work
